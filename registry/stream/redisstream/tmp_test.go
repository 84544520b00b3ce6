package redisstream_test

import (
	"context"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/internal/peertest"
	"github.com/toolcrib/toolcrib/registry/stream/redisstream"
)

func dial(t *testing.T, r *peertest.Redis) *redisstream.Client {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c, err := redisstream.Dial(ctx, r.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
