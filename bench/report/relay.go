package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// inFlight is how many sessions call at the same time.
const inFlight = 16

// contender is one way to reach the upstream.
type contender struct {
	name string
	run  *program // nil when there is nothing in between
	open func(url string) (session, error)
	url  string
	out  error // why it was left out

	sessions []session
	cpu      time.Duration
	calls    int
	rates    []float64       // calls a second, of each round
	loads    []time.Duration // CPU of a call, of each round
	times    []time.Duration // of single calls, one after the other
}

// relay measures calls of a tool of an upstream, through everything that can
// stand before it.
func relay(ctx context.Context, o *options, b *bench) (string, error) {
	upstream, err := launch(ctx, b.path("upstream"))
	if err != nil {
		return "", err
	}
	defer upstream.stop()
	field, err := line(ctx, o, b, upstream.url)
	defer func() {
		for _, c := range field {
			c.end()
		}
	}()
	if err != nil {
		return "", err
	}
	for round := range o.rounds + 1 { // the first one warms up
		for i := range field {
			// Each goes first once, as what follows a garbage collection or a
			// neighbour's burst is not the same.
			if err := field[(round+i)%len(field)].round(o, round > 0); err != nil {
				return "", err
			}
		}
	}
	return relayTable(field), nil
}

// line starts the contenders. Only a peer from npm may be left out.
func line(ctx context.Context, o *options, b *bench, upstream string) ([]*contender, error) {
	config := b.path("toolcrib.yaml")
	if err := os.WriteFile(config, []byte(upstreamConfig(upstream)), 0o600); err != nil {
		return nil, err
	}
	serve := func(binary string) []string {
		return []string{binary, "serve", "-c", config, "--listen", "127.0.0.1:0"}
	}
	between := []struct {
		name string
		cmd  []string
	}{
		{nameRaw, []string{b.path("passthrough"), "-raw", "-to", upstream}},
		{nameBare, []string{b.path("passthrough"), "-to", upstream}},
		{nameToolcrib, serve(b.path("toolcrib"))},
		{nameBeside, serve(o.beside)},
	}
	field := []*contender{{name: nameDirect, open: openStreamable, url: upstream + "/mcp"}}
	for _, c := range between {
		if c.name == nameBeside && o.beside == "" {
			continue
		}
		p, err := launch(ctx, c.cmd[0], c.cmd[1:]...)
		if err != nil {
			return field, err
		}
		field = append(field, &contender{name: c.name, run: p, open: openStreamable, url: p.url + "/mcp"})
	}
	field = append(field, hub(ctx, o, b, upstream))
	for _, c := range field {
		if err := c.connect(); err != nil {
			return field, err
		}
	}
	return field, nil
}

// upstreamConfig lists all tools of an upstream, however many there are.
func upstreamConfig(upstream string) string {
	return "mcp:\n  discovery: full\ntools:\n  mcp_servers:\n    - name: up\n      transport_mode: streamable_http\n      url: " + upstream + "/mcp\n"
}

// hub starts npm's mcp-hub.
func hub(ctx context.Context, o *options, b *bench, upstream string) *contender {
	c := &contender{name: nameHub, open: openTwoWay}
	script := filepath.Join(o.peers, "node_modules", "mcp-hub", "dist", "cli.js")
	if _, err := os.Stat(script); err != nil {
		c.out = errors.New("it is not installed; scripts/peers bench does that")
		return c
	}
	c.run, c.url, c.out = startHub(ctx, b, script, upstream)
	return c
}

func startHub(ctx context.Context, b *bench, script, upstream string) (*program, string, error) {
	config := b.path("hub.json")
	if err := os.WriteFile(config, fmt.Appendf(nil, `{"mcpServers":{"up":{"url":%q}}}`, upstream+"/mcp"), 0o600); err != nil {
		return nil, "", err
	}
	port, err := freePort()
	if err != nil {
		return nil, "", err
	}
	p := prepare(exec.CommandContext(ctx, "node", script, "--port", strconv.Itoa(port), "--config", config))
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.dir, "NODE_ENV=production"}
	if err := p.cmd.Start(); err != nil {
		return nil, "", err
	}
	go p.wait()
	url := "http://127.0.0.1:" + strconv.Itoa(port)
	if err := p.healthy(url + "/api/health"); err != nil {
		p.stop()
		return nil, "", err
	}
	return p, url + "/mcp", nil
}

// healthy waits until a GET of url gives a state that says that the upstream
// is connected.
func (p *program) healthy(url string) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(readyLimit)
	for {
		select {
		case <-tick.C:
			if state := get(url); strings.Contains(state, `"connected"`) {
				return nil
			}
		case <-p.done:
			return errors.New("it ended at once: " + p.tail.String())
		case <-limit:
			return errors.New("it was not ready in time: " + p.tail.String())
		}
	}
}

func get(url string) string {
	resp, err := http.Get(url)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return string(body)
}

// connect opens the sessions. A peer that does not work is left out.
func (c *contender) connect() error {
	for c.out == nil && len(c.sessions) < inFlight {
		s, err := c.open(c.url)
		switch {
		case err == nil:
			c.sessions = append(c.sessions, s)
		case c.name == nameHub:
			c.out = err
		default:
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

func (c *contender) end() {
	for _, s := range c.sessions {
		s.close()
	}
	if c.run != nil {
		c.run.stop()
	}
}

// round makes calls on all sessions at once, and then some on one session
// alone. A round that does not count warms up.
func (c *contender) round(o *options, counts bool) error {
	if c.out != nil {
		return nil
	}
	before, err := c.used()
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := c.all(o.calls); err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	took := time.Since(begin)
	after, err := c.used()
	if err != nil {
		return err
	}
	times, err := c.single(o.calls / 4)
	if err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	if counts {
		c.cpu += after - before
		c.calls += o.calls
		c.rates = append(c.rates, float64(o.calls)/took.Seconds())
		c.loads = append(c.loads, (after-before)/time.Duration(o.calls))
		c.times = append(c.times, times...)
	}
	return nil
}

func (c *contender) used() (time.Duration, error) {
	if c.run == nil {
		return 0, nil
	}
	return c.run.cpu()
}

func (c *contender) all(calls int) error {
	faults := make([]error, len(c.sessions))
	var work sync.WaitGroup
	for i, s := range c.sessions {
		n := calls / len(c.sessions)
		if i < calls%len(c.sessions) {
			n++
		}
		work.Go(func() {
			for range n {
				if faults[i] = s.call(); faults[i] != nil {
					return
				}
			}
		})
	}
	work.Wait()
	return errors.Join(faults...)
}

func (c *contender) single(calls int) ([]time.Duration, error) {
	times := make([]time.Duration, calls)
	for i := range times {
		begin := time.Now()
		if err := c.sessions[0].call(); err != nil {
			return nil, err
		}
		times[i] = time.Since(begin)
	}
	return times, nil
}

func (c *contender) perCall() time.Duration {
	if c.run == nil || c.calls == 0 {
		return 0
	}
	return c.cpu / time.Duration(c.calls)
}

func median[T ~int64 | ~float64](values []T) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
