package redisstream_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/toolcrib/toolcrib/internal/peertest"
	"github.com/toolcrib/toolcrib/registry/stream"
)

// observe connects as an operator does.
func observe(t *testing.T, server *peertest.Redis) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: server.Addr(), Protocol: 2})
	t.Cleanup(func() { c.Close() })
	return c
}

// A server without memory refuses events, and takes them again once there is room. Acknowledgements get through.
func TestMemoryIsFull(t *testing.T) {
	server := peertest.StartRedis(t, &peertest.RedisOptions{Settings: []string{"--maxmemory", "16mb", "--maxmemory-policy", "noeviction"}})
	client := dial(t, server)
	defer client.Close()
	ctx := peertest.Bounded(t)
	s := open(t, client, "full", nil)
	sink := openSink(t, s, "provider", nil)
	defer sink.Close()
	payload := []byte(strings.Repeat("x", 100_000))
	added := 0
	for ; ; added++ {
		_, err := s.Add(ctx, "call", payload)
		if errors.Is(err, stream.ErrNoRoom) {
			break
		}
		if err != nil || added > 1000 {
			t.Fatalf("event %d: %v", added, err)
		}
	}
	for range added {
		ack(t, receive(t, sink))
	}
	eventually(t, func() error { _, err := s.Add(ctx, "call", payload); return err })
	ack(t, receive(t, sink))
}

// A server that starts and still reads its data refuses everything. What a client asks for meanwhile waits.
func TestServerReadsItsData(t *testing.T) {
	server := peertest.StartRedis(t, &peertest.RedisOptions{Sync: true,
		Settings: []string{"--key-load-delay", "100"}})
	client := dial(t, server)
	defer client.Close()
	ctx := peertest.Bounded(t)
	s := open(t, client, "slow", nil) // Nobody reads it: the client does not notice that the server is away.
	const events, adders = 8000, 16   // While it reads, the server looks at its connections after each thousand commands.
	var adding sync.WaitGroup
	for range adders {
		adding.Go(func() {
			for range events / adders {
				if _, err := s.Add(ctx, "call", []byte("x")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	adding.Wait()
	server.Stop()
	var starting sync.WaitGroup
	starting.Go(server.Start)
	defer starting.Wait()
	eventually(t, func() error {
		conn, err := net.Dial("tcp", server.Addr())
		if err == nil {
			err = conn.Close()
		}
		return err
	})
	if _, err := s.Add(ctx, "call", []byte("x")); err != nil {
		t.Fatal(err)
	}
	size, err := s.Size(ctx)
	if err != nil || size.Waiting != events+1 {
		t.Errorf("Size = %+v, %v", size, err)
	}
}

// eventually tries again until there is no error.
func eventually(t *testing.T, try func() error) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for limit := time.After(peertest.Patience); ; {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal(err)
		}
	}
}

// What an operator does to a server breaks calls, and workers and callers go on.
func TestOperatorAtWork(t *testing.T) {
	for name, act := range map[string][]any{
		"all data deleted":          {"FLUSHALL"},
		"all scripts forgotten":     {"SCRIPT", "FLUSH"},
		"all connections cut":       {"CLIENT", "KILL", "TYPE", "normal"},
		"all subscriptions cut":     {"CLIENT", "KILL", "TYPE", "pubsub"},
		"the consumer group gone":   {"XGROUP", "DESTROY", "pulse:stream:busy", "provider"},
		"the stream gone":           {"DEL", "pulse:stream:busy"},
		"the bookkeeping gone":      {"DEL", "{pulse:stream:busy}:state", "{pulse:stream:busy}:later"},
		"all waiting reads woken":   {"CLIENT", "PAUSE", "50"},
		"another kind of key there": {"SET", "pulse:stream:busy", "text"},
	} {
		t.Run(name, func(t *testing.T) {
			server := peertest.StartRedis(t, nil)
			client := dial(t, server)
			defer client.Close()
			b := work(t, client)
			defer b.stop()
			b.call(t)
			operator := observe(t, server)
			if err := operator.Do(t.Context(), act...).Err(); err != nil {
				t.Fatal(err)
			}
			if act[0] == "SET" {
				if _, err := b.s.Add(t.Context(), "call", nil); err == nil || errors.Is(err, stream.ErrUnavailable) || errors.Is(err, stream.ErrFull) {
					t.Errorf("Add to a key of another kind = %v", err)
				}
				operator.Del(t.Context(), "pulse:stream:busy")
			}
			for range 3 {
				b.call(t)
			}
		})
	}
}

// busy is a stream with a worker that answers over the bus.
type busy struct {
	client  stream.Client
	s       stream.Stream
	sink    stream.Sink
	replies stream.Subscription
	answers chan string
	working sync.WaitGroup
	next    int
}

func work(t *testing.T, client stream.Client) *busy {
	t.Helper()
	ctx := peertest.Bounded(t)
	s, err := client.Stream(ctx, "busy", &stream.Options{MaxEvents: 100})
	if err != nil {
		t.Fatal(err)
	}
	b := &busy{client: client, s: s, answers: make(chan string, 100), sink: openSink(t, s, "provider", &stream.SinkOptions{Lease: time.Second})}
	b.replies, err = client.Subscribe(ctx, "replies", func(m stream.Message) { b.answers <- string(m.Payload) })
	if err != nil {
		t.Fatal(err)
	}
	b.working.Go(b.serve)
	return b
}

func (b *busy) serve() {
	for {
		event, err := b.sink.Receive(context.Background())
		if err != nil {
			return
		}
		if b.client.Publish(context.Background(), "replies", stream.Message{Name: "result", Payload: event.Payload}) == nil {
			event.Ack(context.Background()) //nolint:errcheck // The event comes again.
		}
	}
}

func (b *busy) stop() {
	b.sink.Close()
	b.replies.Close()
	b.working.Wait()
}

// call makes a call, and makes it again while no answer comes, as the registry does from its record.
func (b *busy) call(t *testing.T) {
	t.Helper()
	b.next++
	want := fmt.Sprint(b.next)
	again := time.NewTicker(500 * time.Millisecond)
	defer again.Stop()
	limit := time.After(peertest.Patience)
	for {
		_, err := b.s.Add(peertest.Bounded(t), "call", []byte(want))
		for waits := true; waits; {
			select {
			case got := <-b.answers:
				if got == want {
					return
				}
			case <-again.C:
				waits = false
			case <-limit:
				t.Fatalf("no answer to call %s; Add = %v", want, err)
			}
		}
	}
}

// Closing a sink or a client does not wait for the read that waits.
func TestCloseIsPrompt(t *testing.T) {
	server := peertest.StartRedis(t, nil)
	client := dial(t, server)
	s := open(t, client, "prompt", nil)
	sink := openSink(t, s, "provider", nil)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := sink.Receive(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Receive = %v", err)
	}
	received := make(chan error, 1)
	go func() {
		_, err := sink.Receive(context.Background())
		received <- err
	}()
	begin := time.Now()
	if err := sink.Close(); err != nil {
		t.Error(err)
	}
	if err := peertest.Receive(t, received); !errors.Is(err, stream.ErrClosed) {
		t.Errorf("Receive of a closed sink = %v", err)
	}
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("Close took %v", took)
	}
	openSink(t, s, "provider", nil)
	server.Kill()
	begin = time.Now()
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > 7*time.Second {
		t.Errorf("Close without a server took %v", took)
	}
}

// Without a server nothing pretends to work, and everything works again when it is back.
func TestServerIsAway(t *testing.T) {
	server := peertest.StartRedis(t, &peertest.RedisOptions{Sync: true})
	client := dial(t, server)
	defer client.Close()
	b := work(t, client)
	defer b.stop()
	b.call(t)
	server.Kill()
	eventually(t, func() error {
		err := client.Publish(t.Context(), "nobody", stream.Message{Name: "m"})
		if !errors.Is(err, stream.ErrUnavailable) {
			return fmt.Errorf("Publish without a server = %v", err)
		}
		return nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := b.s.Add(ctx, "call", nil); !errors.Is(err, stream.ErrUnavailable) {
		t.Errorf("Add without a server = %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := client.Request(ctx, "nobody", stream.Message{Name: "m"}); !errors.Is(err, stream.ErrUnavailable) {
		t.Errorf("Request without a server = %v", err)
	}
	waiting := make(chan error, 1)
	go func() { _, err := b.s.Add(peertest.Bounded(t), "call", []byte("late")); waiting <- err }()
	server.Start()
	if err := peertest.Receive(t, waiting); err != nil && !errors.Is(err, stream.ErrUnavailable) {
		t.Errorf("Add that waited for the server = %v", err)
	}
	b.call(t)
}

// Whoever does not wait for a connection is told that there is none, also when the server went away while they were on
// their way.
func TestServerGoesAwayUnderQuestions(t *testing.T) {
	server := peertest.StartRedis(t, nil)
	client := dial(t, server)
	defer client.Close()
	const asking = 200
	told := make(chan error, asking)
	for range asking {
		go func() {
			for {
				_, err := client.Request(t.Context(), "nobody", stream.Message{Name: "m"})
				if !errors.Is(err, stream.ErrNoResponder) {
					told <- err
					return
				}
			}
		}()
	}
	server.Kill()
	for range asking {
		if err := peertest.Receive(t, told); !errors.Is(err, stream.ErrUnavailable) {
			t.Errorf("Request without a server = %v", err)
		}
	}
}

// A server that does not answer for a while delays what waits, and loses nothing.
func TestServerIsSlow(t *testing.T) {
	server := peertest.StartRedis(t, nil)
	client := dial(t, server)
	defer client.Close()
	b := work(t, client)
	defer b.stop()
	b.call(t)
	server.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := b.s.Add(ctx, "call", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Add to a server that does not answer = %v", err)
	}
	server.Resume()
	b.call(t)
}
