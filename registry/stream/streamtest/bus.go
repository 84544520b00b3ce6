package streamtest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/registry/stream"
)

func subscribe(t *testing.T, c stream.Client, subject string, handle func(stream.Message)) stream.Subscription {
	t.Helper()
	sub, err := c.Subscribe(within(t, wait), subject, handle)
	if err != nil {
		t.Fatal(err)
	}
	return sub
}

func publish(t *testing.T, c stream.Client, subject, name, payload string) {
	t.Helper()
	if err := c.Publish(within(t, wait), subject, stream.Message{Name: name, Payload: []byte(payload)}); err != nil {
		t.Fatal(err)
	}
}

// heard waits until count messages came.
func heard(t *testing.T, from chan stream.Message, count int) []stream.Message {
	t.Helper()
	var got []stream.Message
	deadline := time.After(wait)
	for len(got) < count {
		select {
		case m := <-from:
			got = append(got, m)
		case <-deadline:
			t.Fatalf("%d of %d messages came", len(got), count)
		}
	}
	return got
}

func testPublish(t *testing.T, f *fixture) {
	subject := f.name + ":replies"
	publish(t, f.client, subject, "result", "nobody listens")
	listeners := make(chan stream.Message, 10)
	for range 3 {
		subscribe(t, client(t, f.backend), subject, func(m stream.Message) { listeners <- m })
	}
	subscribe(t, f.client, subject+":other", func(m stream.Message) { t.Errorf("another subject heard %q", m.Payload) })
	settle(t, f, subject, listeners, 3)
	publish(t, f.client, subject, "output_delta", "hello")
	for _, m := range heard(t, listeners, 3) {
		if m.Name != "output_delta" || string(m.Payload) != "hello" {
			t.Errorf("heard %q %q", m.Name, m.Payload)
		}
	}
}

// settle waits until all of a number of listeners are known everywhere: servers of
// a cluster tell one another of a subscription a moment after it was made.
func settle(t *testing.T, f *fixture, subject string, listeners chan stream.Message, count int) {
	t.Helper()
	for round := 0; ; round++ {
		mark := fmt.Sprint("settle", round)
		publish(t, f.client, subject, "mark", mark)
		got, deadline := 0, time.After(time.Second)
		for waiting := true; waiting && got < count; {
			select {
			case m := <-listeners:
				if string(m.Payload) == mark {
					got++
				}
			case <-deadline:
				waiting = false
			}
		}
		if got == count {
			return
		}
		if round > 30 {
			t.Fatalf("only %d of %d listeners hear what is published", got, count)
		}
	}
}

func testPublishOrder(t *testing.T, f *fixture) {
	const count = 5_000
	subject := f.name + ":replies"
	listener := make(chan stream.Message, count+100)
	subscribe(t, client(t, f.backend), subject, func(m stream.Message) { listener <- m })
	settle(t, f, subject, listener, 1)
	for i := range count {
		publish(t, f.client, subject, "output_delta", strconv.Itoa(i))
	}
	for i, m := range heard(t, listener, count) {
		if string(m.Payload) != strconv.Itoa(i) {
			t.Fatalf("message %d is %s", i, m.Payload)
		}
	}
}

func testUnsubscribe(t *testing.T, f *fixture) {
	subject := f.name + ":replies"
	var closed atomic.Bool
	first, second := make(chan stream.Message, 100), make(chan stream.Message, 100)
	sub := subscribe(t, f.client, subject, func(m stream.Message) {
		if closed.Load() {
			t.Errorf("a closed subscription heard %q", m.Payload)
		}
		first <- m
	})
	subscribe(t, f.client, subject, func(m stream.Message) { second <- m })
	publish(t, f.client, subject, "a", "1")
	heard(t, first, 1)
	heard(t, second, 1)
	if err := sub.Close(); err != nil {
		t.Fatal(err)
	}
	closed.Store(true)
	publish(t, f.client, subject, "a", "2")
	heard(t, second, 1)
}

func testRespond(t *testing.T, f *fixture) {
	const responders, questions = 3, 90
	subject := f.name + ":claims"
	var asked [responders]atomic.Int32
	for i := range responders {
		_, err := client(t, f.backend).Respond(within(t, wait), subject, func(_ context.Context, m stream.Message) stream.Message {
			asked[i].Add(1)
			return stream.Message{Name: "re:" + m.Name, Payload: append([]byte("re: "), m.Payload...)}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range questions {
		got := ask(t, f.client, subject, "claim", strconv.Itoa(i))
		if got.Name != "re:claim" || string(got.Payload) != "re: "+strconv.Itoa(i) {
			t.Fatalf("the answer to %d is %q %q", i, got.Name, got.Payload)
		}
	}
	var total int32
	for i := range asked {
		total += asked[i].Load()
	}
	if total != questions {
		t.Errorf("%d questions were asked %d times", questions, total)
	}
}

// ask asks until somebody responds, whom a cluster may not know yet.
func ask(t *testing.T, c stream.Client, subject, name, payload string) stream.Message {
	t.Helper()
	var got stream.Message
	eventually(t, func() (bool, string) {
		var err error
		got, err = c.Request(within(t, wait), subject, stream.Message{Name: name, Payload: []byte(payload)})
		if err != nil && !errors.Is(err, stream.ErrNoResponder) {
			t.Fatal(err)
		}
		return err == nil, fmt.Sprint("Request = ", err)
	})
	return got
}

func testManyQuestions(t *testing.T, f *fixture) {
	const questions = 200
	subject := f.name + ":claims"
	// Nobody is answered before all have asked.
	var asked sync.WaitGroup
	asked.Add(questions)
	_, err := client(t, f.backend).Respond(within(t, wait), subject, func(_ context.Context, m stream.Message) stream.Message {
		if m.Name == "claim" {
			asked.Done()
			asked.Wait()
		}
		return m
	})
	if err != nil {
		t.Fatal(err)
	}
	ask(t, f.client, subject, "hello", "")
	failed := make(chan error, questions)
	for i := range questions {
		go func() {
			want := strconv.Itoa(i)
			got, err := f.client.Request(within(t, wait), subject, stream.Message{Name: "claim", Payload: []byte(want)})
			if err == nil && string(got.Payload) != want {
				err = fmt.Errorf("the answer to %s is %q", want, got.Payload)
			}
			failed <- err
		}()
	}
	for range questions {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
}

func testNobodyResponds(t *testing.T, f *fixture) {
	subject := f.name + ":claims"
	began := time.Now()
	_, err := f.client.Request(within(t, 2*time.Second), subject, stream.Message{Name: "claim"})
	if !errors.Is(err, stream.ErrNoResponder) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Request to nobody = %v", err)
	}
	t.Logf("known after %v: %v", time.Since(began).Round(time.Millisecond), err)
	sub, err := f.client.Respond(within(t, wait), subject, func(_ context.Context, m stream.Message) stream.Message { return m })
	if err != nil {
		t.Fatal(err)
	}
	ask(t, f.client, subject, "claim", "x")
	if err := sub.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err = f.client.Request(within(t, 2*time.Second), subject, stream.Message{Name: "claim"}); err == nil {
		t.Error("a closed responder answered")
	}
}

func testQuiet(t *testing.T, f *fixture) {
	if f.backend.Received == nil {
		t.Skip("the backend does not count what it receives")
	}
	const streams = 50
	for i := range streams {
		s, err := f.client.Stream(within(t, wait), fmt.Sprintf("%s:%d", f.name, i), nil)
		if err != nil {
			t.Fatal(err)
		}
		k := sink(t, s, nil)
		defer s.Destroy(context.Background()) //nolint:errcheck // The server ends with the test.
		defer k.Close()                       //nolint:errcheck // As above.
	}
	// Connections that are just being closed may take their counts with them.
	grown := int64(-1)
	for grown < 0 {
		before := f.backend.Received(t)
		<-time.After(3 * time.Second)
		grown = f.backend.Received(t) - before
	}
	if grown > streams/2 {
		t.Errorf("%d streams with idle workers sent %d messages in 3 seconds", streams, grown)
	}
}
