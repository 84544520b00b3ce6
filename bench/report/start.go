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
	first, err := firstCalls(ctx, o, b)
	if err != nil {
		return "", err
	}
	return startTable(field) + "\n" + firstTable(first), nil
}

// firstCall is a program with many tools whose first list and call are awaited.
type firstCall struct {
	name string
	cmd  []string
	took []time.Duration
	load []time.Duration
}

// firstCalls measures how soon after its start a program with many tools has
// listed them and answered a call.
func firstCalls(ctx context.Context, o *options, b *bench) ([]*firstCall, error) {
	upstream, err := launch(ctx, b.path("upstream"), "-tools", manyTools)
	if err != nil {
		return nil, err
	}
	defer upstream.stop()
	config := b.path("many.yaml")
	if err := os.WriteFile(config, []byte(upstreamConfig(upstream.url)), 0o600); err != nil {
		return nil, err
	}
	serve := func(binary string) []string {
		return []string{binary, "serve", "-c", config, "--listen", "127.0.0.1:0"}
	}
	field := []*firstCall{
		{name: nameBare, cmd: []string{b.path("passthrough"), "-to", upstream.url}},
		{name: nameToolcrib, cmd: serve(b.path("toolcrib"))},
	}
	if o.beside != "" {
		field = append(field, &firstCall{name: nameBeside, cmd: serve(o.beside)})
	}
	for range o.starts {
		for _, f := range field {
			if err := f.once(ctx); err != nil {
				return nil, fmt.Errorf("%s: %w", f.name, err)
			}
		}
	}
	return field, nil
}

// once starts the program, opens a session, which lists the tools, and makes a
// call.
func (f *firstCall) once(ctx context.Context) error {
	begin := time.Now()
	p, err := launch(ctx, f.cmd[0], f.cmd[1:]...)
	if err != nil {
		return err
	}
	defer p.stop()
	s, err := openStreamable(p.url + "/mcp")
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.call(); err != nil {
		return err
	}
	f.took = append(f.took, time.Since(begin))
	load, err := p.onCPU()
	f.load = append(f.load, load)
	return err
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
