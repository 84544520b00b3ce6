package redisstream_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/toolcrib/toolcrib/internal/peertest"
	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/registry/stream/redisstream"
)

// Where a user may no longer listen to one of its channels it still hears the others, and that one again when it may.
func TestRightTakenAway(t *testing.T) {
	server := peertest.StartRedis(t, nil)
	admin := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer admin.Close()
	allow := func(channels ...any) {
		t.Helper()
		rules := append([]any{"ACL", "SETUSER", "ada", "on", ">secret", "allkeys", "+@all", "resetchannels"}, channels...)
		if err := admin.Do(t.Context(), rules...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	allow("&toolcrib:0:bus:kept", "&toolcrib:0:bus:lost")
	var log peertest.Log
	client, err := redisstream.Dial(peertest.Bounded(t), server.URL(), &redisstream.Options{User: "ada", Password: "secret",
		Logger: log.Logger(slog.LevelInfo)})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	heard := make(chan stream.Message, 100)
	for _, subject := range []string{"kept", "lost"} {
		if _, err := client.Subscribe(peertest.Bounded(t), subject, func(m stream.Message) {
			if m.Name != "news" {
				heard <- m
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	allow("&toolcrib:0:bus:kept") // Redis closes the connection that listens.
	other := dial(t, server)
	defer other.Close()
	ctx := peertest.Bounded(t)
	for range 1000 {
		if err := other.Publish(ctx, "kept", stream.Message{Name: "news"}); err != nil {
			t.Fatal(err)
		}
		if admin.PubSubNumSub(ctx, "toolcrib:0:bus:kept").Val()["toolcrib:0:bus:kept"] > 0 && strings.Contains(log.String(), "toolcrib:0:bus:lost") {
			break
		}
	}
	if err := other.Publish(ctx, "kept", stream.Message{Name: "last"}); err != nil {
		t.Fatal(err)
	}
	if m := <-heard; m.Name != "last" {
		t.Errorf("heard %s", m.Name)
	}
	if _, err := client.Subscribe(ctx, "lost", func(stream.Message) {}); !errors.Is(err, stream.ErrForbidden) || !strings.Contains(err.Error(), "toolcrib:0:bus:lost") {
		t.Errorf("Subscribe without the right = %v", err)
	}
	if _, err := client.Subscribe(ctx, "kept", func(stream.Message) {}); err != nil {
		t.Errorf("Subscribe with the right = %v", err)
	}
	allow("&toolcrib:0:bus:kept", "&toolcrib:0:bus:lost")
	for !strings.Contains(log.String(), "listen again") && ctx.Err() == nil {
		if err := other.Publish(ctx, "kept", stream.Message{Name: "news"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := other.Publish(ctx, "lost", stream.Message{Name: "found"}); err != nil {
		t.Fatal(err)
	}
	if m := <-heard; m.Name != "found" {
		t.Errorf("heard %s", m.Name)
	}
}
