package redisstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/toolcrib/toolcrib/internal/peertest"
)

// A sweep removes the consumers of workers that are gone, but for those that have events, which others take first.
func TestDeadWorkersAreForgotten(t *testing.T) {
	server := peertest.StartRedis(t, nil)
	ctx := peertest.Bounded(t)
	client, err := Dial(ctx, server.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	queue, err := client.Stream(ctx, "graves", nil)
	if err != nil {
		t.Fatal(err)
	}
	alive, err := queue.Sink(ctx, "provider", nil)
	if err != nil {
		t.Fatal(err)
	}
	s := alive.(*sink)
	alive.Close()
	for _, args := range [][]any{
		{"XADD", "pulse:stream:graves", "*", "n", "call", "p", "1"},
		{"XREADGROUP", "GROUP", "provider", "holds one", "STREAMS", "pulse:stream:graves", ">"},
		{"XGROUP", "CREATECONSUMER", "pulse:stream:graves", "provider", "holds nothing"},
	} {
		if err := client.redis.Do(ctx, args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	const gone, lease = 10, 1_000_000 // ms
	for {
		_, err := s.queue.run(ctx, client.scripts.sweep, s.group, s.consumer, lease, 8, 0, 1, scanned, gone, 0)
		if err != nil {
			t.Fatal(err)
		}
		if names := consumers(ctx, t, client.redis); slices.Equal(names, []string{"holds one"}) {
			return
		}
	}
}

func consumers(ctx context.Context, t *testing.T, c *redis.Client) (names []string) {
	t.Helper()
	list, err := c.XInfoConsumers(ctx, "pulse:stream:graves", "provider").Result()
	if err = errors.Join(err, ctx.Err()); err != nil {
		t.Fatal(fmt.Errorf("consumers %v: %w", list, err))
	}
	for _, one := range list {
		names = append(names, one.Name)
	}
	return names
}
