package redisstream_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/toolcrib/toolcrib/internal/peertest"
	"github.com/toolcrib/toolcrib/registry/stream"
)

// A program that knows only the documented layout adds a request and reads its answer.
func TestForeignProgram(t *testing.T) {
	server := peertest.StartRedis(t, nil)
	client := dial(t, server)
	defer client.Close()
	foreign := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer foreign.Close()
	ctx := peertest.Bounded(t)

	request := `{"type":"call","tool_use_id":"tu_1","tool":"get_current","payload":{"city":"Oslo"},"meta":{"run_id":"r","session_id":"s"}}`
	id, err := foreign.Do(ctx, "XADD", "pulse:stream:toolset:weather:requests", "*", "n", "call", "p", request).Text()
	if err != nil {
		t.Fatal(err)
	}
	requests := open(t, client, "toolset:weather:requests", nil)
	sink := openSink(t, requests, "provider", nil)
	defer sink.Close()
	event := receive(t, sink)
	if event.ID != id || event.Name != "call" || string(event.Payload) != request || event.Deliveries != 1 {
		t.Errorf("received %s %q %s, delivery %d", event.ID, event.Name, event.Payload, event.Deliveries)
	}
	if !json.Valid(event.Payload) {
		t.Errorf("the payload is not JSON: %s", event.Payload)
	}
	ack(t, event)

	answers := open(t, client, "result:tu_1", &stream.Options{TTL: time.Minute})
	if _, err := answers.Add(ctx, "result", []byte(`{"tool_use_id":"tu_1"}`)); err != nil {
		t.Fatal(err)
	}
	got, err := foreign.XRead(ctx, &redis.XReadArgs{Streams: []string{"pulse:stream:result:tu_1", "0"}}).Result()
	if err != nil {
		t.Fatal(err)
	}
	values := got[0].Messages[0].Values
	if len(values) != 2 || values["n"] != "result" || values["p"] != `{"tool_use_id":"tu_1"}` {
		t.Errorf("a foreign program reads %v", values)
	}
	for _, key := range []string{"pulse:stream:result:tu_1", "{pulse:stream:result:tu_1}:state"} {
		if ttl := foreign.TTL(ctx, key).Val(); ttl <= 0 || ttl > time.Minute {
			t.Errorf("%s vanishes in %v", key, ttl)
		}
	}
}

// An entry without the documented fields reaches the worker, who decides what to do with it.
func TestForeignEntryWithoutFields(t *testing.T) {
	server := peertest.StartRedis(t, nil)
	client := dial(t, server)
	defer client.Close()
	foreign := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer foreign.Close()
	if err := foreign.Do(t.Context(), "XADD", "pulse:stream:x", "*", "what", "ever").Err(); err != nil {
		t.Fatal(err)
	}
	sink := openSink(t, open(t, client, "x", nil), "provider", nil)
	defer sink.Close()
	event := receive(t, sink)
	if event.Name != "" || len(event.Payload) != 0 {
		t.Errorf("received %q %q", event.Name, event.Payload)
	}
	ack(t, event)
}

// A consumer of another hand shares the events, and what it acknowledged without deleting makes no stream full.
func TestForeignConsumer(t *testing.T) {
	server := peertest.StartRedis(t, nil)
	client := dial(t, server)
	defer client.Close()
	foreign := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer foreign.Close()
	ctx := peertest.Bounded(t)
	s := open(t, client, "shared", &stream.Options{MaxEvents: 3})
	if err := foreign.XGroupCreateMkStream(ctx, "pulse:stream:shared", "provider", "0").Err(); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		for range 3 {
			if _, err := s.Add(ctx, "call", nil); err != nil {
				t.Fatal(err)
			}
		}
		got, err := foreign.XReadGroup(ctx, &redis.XReadGroupArgs{
			Group: "provider", Consumer: "foreign", Streams: []string{"pulse:stream:shared", ">"},
		}).Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, message := range got[0].Messages {
			foreign.XAck(ctx, "pulse:stream:shared", "provider", message.ID)
		}
	}
}

// Nothing is left of workers that ended in order, but the group and its lease.
func TestNothingIsLeft(t *testing.T) {
	server := peertest.StartRedis(t, nil)
	client := dial(t, server)
	foreign := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer foreign.Close()
	ctx := peertest.Bounded(t)
	s := open(t, client, "tidy", nil)
	for range 3 {
		sink := openSink(t, s, "provider", nil)
		if _, err := s.Add(ctx, "call", nil); err != nil {
			t.Fatal(err)
		}
		event := receive(t, sink)
		if err := sink.Close(); err != nil {
			t.Fatal(err)
		}
		ack(t, event)
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	consumers, err := foreign.XInfoConsumers(ctx, "pulse:stream:tidy", "provider").Result()
	if err != nil || len(consumers) != 0 {
		t.Errorf("consumers that are left: %+v, %v", consumers, err)
	}
	keys := foreign.Keys(ctx, "*").Val()
	slices.Sort(keys)
	if want := []string{"pulse:stream:tidy", "{pulse:stream:tidy}:state"}; !slices.Equal(keys, want) {
		t.Errorf("keys that are left: %q", keys)
	}
	if n := foreign.XLen(ctx, "pulse:stream:tidy").Val(); n != 0 {
		t.Errorf("%d entries are left", n)
	}
}
