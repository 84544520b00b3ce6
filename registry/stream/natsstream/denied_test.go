package natsstream_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/registry/stream/natsstream"
)

// Each part of a name is a token, so that one wildcard of a permission stands for
// one part, and no two names meet.
func TestPartsAreTokens(t *testing.T) {
	url := run(t, &server.Options{})
	plain, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	seen, err := plain.SubscribeSync("toolcrib.>")
	if err != nil {
		t.Fatal(err)
	}
	if err := plain.Flush(); err != nil {
		t.Fatal(err)
	}
	c := dial(t, url, &natsstream.Options{Inbox: "toolset:a.b"})
	defer c.Close() //nolint:errcheck // It never fails.
	for name, want := range map[string]string{
		"toolset:weather:cancel": "toolset.weather.cancel",
		"toolset:a.b:cancel":     "toolset.a%2Eb.cancel",
		":a::b:":                 "%.a.%.b.%",
		":":                      "%.%",
		"~%":                     "%7E%25",
	} {
		if err := c.Publish(t.Context(), name, stream.Message{Name: "x:y"}); err != nil {
			t.Fatal(err)
		}
		msg, err := seen.NextMsg(10 * time.Second)
		if err != nil || msg.Subject != "toolcrib.bus."+want+".x~y" {
			t.Errorf("%q goes to %v, %v", name, msg, err)
		}
	}
	answer := make(chan *nats.Msg, 1)
	if _, err := plain.Subscribe("toolcrib.ask.q.*", func(m *nats.Msg) { answer <- m; m.Respond(nil) }); err != nil { //nolint:errcheck // Request says so.
		t.Fatal(err)
	}
	if err := plain.Flush(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Request(within(t), "q", stream.Message{Name: "m"}); err != nil {
		t.Fatal(err)
	}
	if m := <-answer; !strings.HasPrefix(m.Reply, "toolcrib.inbox.toolset.a%2Eb.") {
		t.Errorf("the answer is to go to %s", m.Reply)
	}
}

// A stream takes events by the subject with its name as one token too, and one that
// has only that gets the other.
func TestSubjectsOfAStream(t *testing.T) {
	url := run(t, &server.Options{})
	conn, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "toolcrib~toolset~old~requests", Subjects: []string{"toolcrib.stream.toolset~old~requests.*"},
		Retention: jetstream.WorkQueuePolicy, Discard: jetstream.DiscardNew, MaxMsgs: 7})
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, url, nil)
	defer c.Close() //nolint:errcheck // It never fails.
	for _, name := range []string{"old", "new"} {
		s, err := c.Stream(t.Context(), "toolset:"+name+":requests", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Add(within(t), "call", nil); err != nil {
			t.Fatal(err)
		}
		for _, subject := range []string{"toolcrib.stream.toolset~" + name + "~requests.call", "toolcrib.stream.toolset." + name + ".requests.call"} {
			if _, err := js.Publish(within(t), subject, nil); err != nil {
				t.Errorf("publish to %s: %v", subject, err)
			}
		}
		if size, err := s.Size(within(t)); err != nil || size.Waiting != 3 {
			t.Errorf("%s holds %+v, %v", name, size, err)
		}
	}
	info, err := js.Stream(t.Context(), "toolcrib~toolset~old~requests")
	if err != nil || info.CachedInfo().Config.MaxMsgs != 7 {
		t.Errorf("the bound of the stream that was there: %+v, %v", info, err)
	}
}

// Who may not hear answers learns it when it connects, and not from each request.
func TestAnswersAreForbidden(t *testing.T) {
	opts := &server.Options{Users: []*server.User{{Username: "ada", Password: "s3cr3t", Permissions: &server.Permissions{
		Subscribe: &server.SubjectPermission{Allow: []string{"toolcrib.inbox.mine.>"}}}}}}
	url := run(t, opts)
	for _, inbox := range []string{"", "others"} {
		c, err := natsstream.Dial(within(t), url, &natsstream.Options{User: "ada", Password: "s3cr3t", Inbox: inbox})
		if !errors.Is(err, stream.ErrForbidden) || !strings.Contains(err.Error(), "permissions.subscribe.allow") || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("Dial with the inbox %q = %v, %v", inbox, c, err)
		}
	}
	c := dial(t, url, &natsstream.Options{User: "ada", Password: "s3cr3t", Inbox: "mine"})
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// within bounds what a test waits for.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// Who was asked once, and so knows where one answer went, cannot guess where that to
// a question to somebody else goes.
func TestAnswersCannotBeGuessed(t *testing.T) {
	url := run(t, &server.Options{})
	other, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	var learned string
	if _, err := other.Subscribe("toolcrib.ask.other.*", func(m *nats.Msg) { learned = m.Reply; m.Respond(nil) }); err != nil { //nolint:errcheck // Request says so.
		t.Fatal(err)
	}
	if _, err := other.Subscribe("toolcrib.ask.one.*", func(m *nats.Msg) {
		at := strings.LastIndexByte(learned, '.')
		id, _ := strconv.ParseUint(learned[at+1:], 36, 64)
		for next := id + 1; next <= id+100; next++ {
			other.Publish(learned[:at+1]+strconv.FormatUint(next, 36), []byte("forged")) //nolint:errcheck // Request says so.
		}
		m.Respond([]byte("real")) //nolint:errcheck // Request says so.
	}); err != nil {
		t.Fatal(err)
	}
	if err := other.Flush(); err != nil {
		t.Fatal(err)
	}
	c := dial(t, url, nil)
	defer c.Close() //nolint:errcheck // It never fails.
	for range 3 {
		if _, err := c.Request(within(t), "other", stream.Message{Name: "m"}); err != nil {
			t.Fatal(err)
		}
		if got, err := c.Request(within(t), "one", stream.Message{Name: "m"}); err != nil || string(got.Payload) != "real" {
			t.Errorf("the answer is %q, %v", got.Payload, err)
		}
	}
}
