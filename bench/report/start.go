package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"
)

// settle is how long a program is left alone before its memory is looked at.
const settle = 2 * time.Second

// starter is a program whose start is measured.
type starter struct {
	name   string
	cmd    []string
	ready  []time.Duration
	memory int64
}

// start measures how soon programs listen and what they hold when idle.
func start(ctx context.Context, o *options, b *bench) (string, error) {
	upstream, err := launch(ctx, b.path("upstream"))
	if err != nil {
		return "", err
	}
	defer upstream.stop()
	one, none := b.path("one.yaml"), b.path("none.yaml")
	if err := os.WriteFile(one, []byte(upstreamConfig(upstream.url)), 0o600); err != nil {
		return "", err
	}
	if err := os.WriteFile(none, []byte("tools:\n  built_in: [clock.now]\n"), 0o600); err != nil {
		return "", err
	}
	serve := func(config string) []string {
		return []string{b.path("toolcrib"), "serve", "-c", config, "--listen", "127.0.0.1:0"}
	}
	field := []*starter{
		{name: "bare net/http program", cmd: []string{b.path("upstream")}},
		{name: "toolcrib serve, no upstream", cmd: serve(none)},
		{name: "toolcrib serve, one upstream", cmd: serve(one)},
	}
	for range o.starts {
		for _, s := range field {
			if err := s.once(ctx); err != nil {
				return "", err
			}
		}
	}
	for _, s := range field {
		if err := s.idle(ctx); err != nil {
			return "", err
		}
	}
	return startTable(field), nil
}

func (s *starter) once(ctx context.Context) error {
	p, err := launch(ctx, s.cmd[0], s.cmd[1:]...)
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	s.ready = append(s.ready, p.ready)
	p.stop()
	return nil
}

// idle looks at the memory of a program that is ready and has nothing to do.
func (s *starter) idle(ctx context.Context) error {
	p, err := launch(ctx, s.cmd[0], s.cmd[1:]...)
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	defer p.stop()
	select {
	case <-time.After(settle):
	case <-ctx.Done():
		return ctx.Err()
	}
	s.memory, err = p.resident()
	return err
}

func freePort() (int, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port, nil
}
