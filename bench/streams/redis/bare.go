package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/toolcrib/toolcrib/bench/streams/floor"
)

const (
	requests = "bench:requests"
	group    = "provider"
	batch    = 64
	block    = time.Second
)

func connect(o *floor.Options) (*redis.Client, error) {
	parsed, err := redis.ParseURL(o.Server)
	if err != nil {
		return nil, errors.New("the URL is not that of a Redis server")
	}
	parsed.PoolSize = o.InFlight + 4
	return redis.NewClient(parsed), nil
}

// bare is the caller of the floor.
type bare struct {
	floor.Answers
	server  string
	client  *redis.Client
	replies string
	payload string
	stop    context.CancelFunc
	ended   chan struct{}
}

func startBare(ctx context.Context, o *floor.Options) (floor.Caller, error) {
	client, err := connect(o)
	if err != nil {
		return nil, err
	}
	if err := client.Del(ctx, requests).Err(); err != nil {
		return nil, err
	}
	if err := client.XGroupCreateMkStream(ctx, requests, group, "0").Err(); err != nil {
		return nil, err
	}
	b := &bare{
		server: o.Server, client: client, ended: make(chan struct{}),
		replies: fmt.Sprintf("bench:replies:%d", os.Getpid()), payload: strings.Repeat("x", o.Payload),
	}
	reading, stop := context.WithCancel(ctx)
	b.stop = stop
	go b.read(reading)
	return b, nil
}

func (b *bare) Close() error {
	b.stop()
	<-b.ended
	return errors.Join(b.client.Del(context.Background(), requests, b.replies).Err(), b.client.Close())
}

func (b *bare) Server() string { return b.server }

func (b *bare) Call(ctx context.Context) error {
	id, answered := b.Expect()
	err := b.client.XAdd(ctx, &redis.XAddArgs{Stream: requests, Values: []any{"id", id, "to", b.replies, "p", b.payload}}).Err()
	if err != nil {
		return err
	}
	return floor.Await(id, answered)
}

// read hands out the answers.
func (b *bare) read(ctx context.Context) {
	defer close(b.ended)
	last := "0"
	for ctx.Err() == nil {
		streams, err := b.client.XRead(ctx, &redis.XReadArgs{Streams: []string{b.replies, last}, Count: batch, Block: block}).Result()
		if err != nil {
			continue // nothing came, or the round is over
		}
		for _, message := range streams[0].Messages {
			id, _ := message.Values["id"].(string)
			b.Come(id)
			last = message.ID
		}
		b.client.XTrimMinID(ctx, b.replies, last)
	}
}

// workBare answers requests until it is killed.
func workBare(ctx context.Context, o *floor.Options) error {
	client, err := connect(o)
	if err != nil {
		return err
	}
	consumer := fmt.Sprint(os.Getpid())
	for {
		streams, err := client.XReadGroup(ctx, &redis.XReadGroupArgs{
			Group: group, Consumer: consumer, Streams: []string{requests, ">"}, Count: batch, Block: block,
		}).Result()
		if errors.Is(err, redis.Nil) {
			continue
		}
		if err != nil {
			return err
		}
		for _, message := range streams[0].Messages {
			go handle(ctx, client, message)
		}
	}
}

// handle answers a request with its own payload, and is done with it.
func handle(ctx context.Context, client *redis.Client, message redis.XMessage) {
	to, _ := message.Values["to"].(string)
	err := client.XAdd(ctx, &redis.XAddArgs{Stream: to, Values: []any{"id", message.Values["id"], "p", message.Values["p"]}}).Err()
	if err == nil {
		_, err = client.Pipelined(ctx, func(p redis.Pipeliner) error {
			p.XAck(ctx, requests, group, message.ID)
			p.XDel(ctx, requests, message.ID)
			return nil
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "redis: worker:", err)
	}
}
