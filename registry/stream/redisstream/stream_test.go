package redisstream_test

import (
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/toolcrib/toolcrib/internal/peertest"
	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/registry/stream/streamtest"
)

func TestSuite(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options peertest.RedisOptions
	}{
		{"synced", peertest.RedisOptions{Sync: true}},
		{"in memory", peertest.RedisOptions{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			streamtest.Run(t, func(t *testing.T) *streamtest.Backend {
				return backend(t, peertest.StartRedis(t, &tt.options), !tt.options.Sync)
			})
		})
	}
}

func backend(t *testing.T, r *peertest.Redis, forgets bool) *streamtest.Backend {
	observer := redis.NewClient(&redis.Options{Addr: r.Addr()})
	t.Cleanup(func() { observer.Close() })
	return &streamtest.Backend{
		Client:   func(t *testing.T) stream.Client { return dial(t, r) },
		Restart:  func(*testing.T) { r.Stop(); r.Start() },
		Kill:     func(*testing.T) { r.Kill(); r.Start() },
		Forgets:  forgets,
		Received: func(t *testing.T) int64 { return received(t, observer) },
	}
}

// received counts the reads from clients that the server has made.
func received(t *testing.T, c *redis.Client) int64 {
	t.Helper()
	info, err := c.InfoMap(t.Context(), "stats").Result()
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseInt(info["Stats"]["total_reads_processed"], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
