package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// manyTools is how many tools the upstream of the lists has.
const manyTools = "500"

// lister is one way to get the list of many tools.
type lister struct {
	name  string
	url   string
	run   *program // whose CPU time counts
	wire  *streamable
	bytes int

	times []time.Duration
	cpu   time.Duration
	lists int
}

// lists measures tools/list of many tools, beside an upstream that writes the
// same bytes from memory.
func lists(ctx context.Context, o *options, b *bench) (string, error) {
	upstream, err := launch(ctx, b.path("upstream"), "-tools", manyTools)
	if err != nil {
		return "", err
	}
	defer upstream.stop()
	bare, err := launch(ctx, b.path("passthrough"), "-to", upstream.url)
	if err != nil {
		return "", err
	}
	defer bare.stop()
	gateway, err := serveMany(ctx, b, upstream.url)
	if err != nil {
		return "", err
	}
	defer gateway.stop()
	field := []*lister{
		{name: "written from memory by a net/http program", url: upstream.url, run: upstream},
		{name: "the same, through the bare pass-through", url: bare.url, run: bare},
		{name: nameToolcrib, url: gateway.url, run: gateway},
	}
	if err := listInTurns(o, field); err != nil {
		return "", err
	}
	return listTable(field), nil
}

// serveMany starts toolcrib in front of an upstream of many tools.
func serveMany(ctx context.Context, b *bench, upstream string) (*program, error) {
	config := b.path("many.yaml")
	if err := os.WriteFile(config, []byte(upstreamConfig(upstream)), 0o600); err != nil {
		return nil, err
	}
	return launch(ctx, b.path("toolcrib"), "serve", "-c", config, "--listen", "127.0.0.1:0")
}

// listInTurns asks for lists, in rounds in which each has its turn. The first
// round warms up.
func listInTurns(o *options, field []*lister) error {
	for _, l := range field {
		s, err := openStreamable(l.url + "/mcp")
		if err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
		defer s.close()
		l.wire = s.(*streamable)
	}
	for round := range o.rounds + 1 {
		for i := range field {
			l := field[(round+i)%len(field)]
			if err := l.round(o.calls/10, round > 0); err != nil {
				return fmt.Errorf("%s: %w", l.name, err)
			}
		}
	}
	return nil
}

func (l *lister) round(n int, counts bool) error {
	before, err := l.run.cpu()
	if err != nil {
		return err
	}
	for range n {
		begin := time.Now()
		_, list, err := l.wire.post(l.wire.head, listMessage)
		if err != nil {
			return err
		}
		l.bytes = len(list)
		if counts {
			l.times = append(l.times, time.Since(begin))
		}
	}
	after, err := l.run.cpu()
	if err != nil {
		return err
	}
	if counts {
		l.cpu, l.lists = l.cpu+after-before, l.lists+n
	}
	return nil
}

func listTable(field []*lister) string {
	var t strings.Builder
	fmt.Fprintf(&t, "| `tools/list` of %s tools | bytes | p50 | × memory | CPU per list | × memory | target |\n|---|---|---|---|---|---|---|\n", manyTools)
	floor := field[0]
	for _, l := range field {
		target := ""
		if l.name == nameToolcrib {
			target = "p50 ≤ 3 × memory"
		}
		fmt.Fprintf(&t, "| %s | %d | %s | %.2f | %s | %.2f | %s |\n", l.name, l.bytes, micros(median(l.times)), over(median(l.times), median(floor.times)),
			micros(l.perList()), over(l.perList(), floor.perList()), target)
	}
	return t.String()
}

func (l *lister) perList() time.Duration { return l.cpu / time.Duration(max(l.lists, 1)) }
