package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolcrib/toolcrib/bench/streams/floor"
)

const (
	queueName = "bench"
	requests  = "bench.requests"
	replyTo   = "Reply-To"
	// pullExpiry is for how long the worker asks for messages at a time, and so how long a
	// round stalls at most when the library does not ask for more before that has passed.
	pullExpiry = 2 * time.Second
)

// bare is the caller of the floor.
type bare struct {
	floor.Answers
	dir     string
	server  *server.Server
	conn    *nats.Conn
	js      jetstream.JetStream
	replies string
	payload []byte
}

func startBare(syncAlways bool) func(context.Context, *floor.Options) (floor.Caller, error) {
	return func(ctx context.Context, o *floor.Options) (floor.Caller, error) {
		b := &bare{replies: nats.NewInbox(), payload: []byte(strings.Repeat("x", o.Payload))}
		return b, errors.Join(b.serve(syncAlways), b.connect(ctx))
	}
}

func (b *bare) serve(syncAlways bool) (err error) {
	if b.dir, err = os.MkdirTemp("", "bench-nats-"); err != nil {
		return err
	}
	b.server, err = server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true, Authorization: token,
		JetStream: true, StoreDir: b.dir, SyncAlways: syncAlways})
	if err != nil {
		return err
	}
	b.server.Start()
	if !b.server.ReadyForConnections(10 * time.Second) {
		return errors.New("the server does not start")
	}
	return nil
}

func (b *bare) connect(ctx context.Context) (err error) {
	if b.conn, err = nats.Connect("", nats.InProcessServer(b.server), nats.Token(token)); err != nil {
		return err
	}
	if b.js, err = jetstream.New(b.conn); err != nil {
		return err
	}
	queue, err := b.js.CreateStream(ctx, jetstream.StreamConfig{Name: queueName, Subjects: []string{requests}, Retention: jetstream.WorkQueuePolicy,
		MaxMsgs: 10_000, Discard: jetstream.DiscardNew})
	if err != nil {
		return err
	}
	if _, err := queue.CreateConsumer(ctx, jetstream.ConsumerConfig{Durable: "provider", AckPolicy: jetstream.AckExplicitPolicy}); err != nil {
		return err
	}
	_, err = b.conn.Subscribe(b.replies+".*", func(msg *nats.Msg) { b.Come(msg.Subject[len(b.replies)+1:]) })
	return err
}

func (b *bare) Server() string { return b.server.ClientURL() }

func (b *bare) Close() error {
	b.conn.Close()
	b.server.Shutdown()
	b.server.WaitForShutdown()
	return os.RemoveAll(b.dir)
}

func (b *bare) Call(ctx context.Context) error {
	id, answered := b.Expect()
	msg := &nats.Msg{Subject: requests, Data: b.payload, Header: nats.Header{replyTo: {b.replies + "." + id}}}
	if _, err := b.js.PublishMsg(ctx, msg); err != nil {
		return err
	}
	return floor.Await(id, answered)
}

// workBare answers requests until it is killed.
func workBare(ctx context.Context, o *floor.Options) error {
	conn, err := nats.Connect(o.Server, nats.Token(token))
	if err != nil {
		return err
	}
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	consumer, err := js.Consumer(ctx, queueName, "provider")
	if err != nil {
		return err
	}
	consuming, err := consumer.Consume(func(msg jetstream.Msg) {
		go func() {
			err := conn.Publish(msg.Headers().Get(replyTo), msg.Data())
			if err = errors.Join(err, msg.Ack()); err != nil {
				fmt.Fprintln(os.Stderr, "nats: worker:", err)
			}
		}()
	}, jetstream.PullMaxMessages(max(o.InFlight, 1)), jetstream.PullExpiry(pullExpiry))
	if err != nil {
		return err
	}
	<-consuming.Closed()
	return nil
}
