package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/toolcrib/toolcrib/internal/mainpkg"
)

// token is that of the stream server, which only this machine reaches.
const token = "reliability"

// cluster is a stream server, a gateway and workers, each a process that is
// started again when it ended.
type cluster struct {
	o        *options
	url      string // of the gateway
	programs []*program
	rand     *rand.Rand

	mu    sync.Mutex
	kills map[string]int // by kind
}

// program is one process that is kept running.
type program struct {
	kind, name string
	command    func() *exec.Cmd
	log        string

	mu      sync.Mutex
	cmd     *exec.Cmd
	ended   chan struct{}
	stopped bool
}

func startCluster(ctx context.Context, o *options) (*cluster, error) {
	c := &cluster{o: o, rand: rand.New(rand.NewPCG(o.seed, 1)), kills: map[string]int{}}
	if o.toolcrib == "" {
		o.toolcrib = filepath.Join(o.dir, "toolcrib")
		build := exec.CommandContext(ctx, "go", "build", "-tags", mainpkg.Tags, "-o", o.toolcrib, "github.com/toolcrib/toolcrib/cmd/toolcrib")
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build toolcrib: %w\n%s", err, out)
		}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	streamAddr, gatewayAddr, err := twoAddresses()
	if err != nil {
		return nil, err
	}
	o.server, c.url = streamAddr, "http://"+gatewayAddr
	config := filepath.Join(o.dir, "toolcrib.yaml")
	if err := os.WriteFile(config, []byte(configuration(streamAddr)), 0o600); err != nil {
		return nil, err
	}
	own := func(be string) func() *exec.Cmd {
		return func() *exec.Cmd { return exec.Command(self, "-be", be, "-server", streamAddr, "-dir", o.dir) }
	}
	c.add("stream server", "server", own("server"))
	c.add("gateway", "gateway", func() *exec.Cmd {
		cmd := exec.Command(o.toolcrib, "serve", "-c", config, "--listen", gatewayAddr)
		cmd.Env = append(os.Environ(), "STREAM_TOKEN="+token)
		return cmd
	})
	for i := range o.workers {
		c.add("worker", fmt.Sprintf("worker-%d", i), own("worker"))
	}
	if err := c.begin(ctx); err != nil {
		c.stop()
		return nil, err
	}
	return c, nil
}

func configuration(streamAddr string) string {
	return "data_dir: data\nworkers:\n  url: nats://" + streamAddr + "\n  token: ${STREAM_TOKEN}\n" +
		"  wait: true\n  ping_interval: 1s\n  missed_pings: 3\n  stale_after: 5s\n  max_call_time: 1m\n"
}

func (c *cluster) add(kind, name string, command func() *exec.Cmd) {
	c.programs = append(c.programs, &program{kind: kind, name: name, command: command, log: filepath.Join(c.o.dir, name+".log")})
}

// begin starts everything and waits until the tools are listed.
func (c *cluster) begin(ctx context.Context) error {
	for _, p := range c.programs {
		if err := p.start(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		body, err := post(ctx, c.url+"/v1/tools/list", "{}")
		if err == nil && strings.Contains(string(body), `"rely.write"`) {
			return nil
		}
		if !pause(ctx, 50*time.Millisecond) {
			return fmt.Errorf("the tools of the workers are not listed: %w\n%s", err, c.logs())
		}
	}
}

func post(ctx context.Context, url, body string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

// kill ends one process with SIGKILL and starts it again.
func (c *cluster) kill() error {
	// A third of the kills each for workers, the gateway and the stream server.
	p := c.programs[c.rand.IntN(3)]
	if p.kind == "worker" {
		p = c.programs[2+c.rand.IntN(c.o.workers)]
	}
	c.mu.Lock()
	c.kills[p.kind]++
	c.mu.Unlock()
	p.end()
	return p.start()
}

func (c *cluster) killed() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kills
}

func (c *cluster) stop() {
	for i := range c.programs {
		p := c.programs[len(c.programs)-1-i]
		p.mu.Lock()
		p.stopped = true
		p.mu.Unlock()
		p.end()
	}
}

func (c *cluster) logs() string {
	var all strings.Builder
	for _, p := range c.programs {
		text, _ := os.ReadFile(p.log)
		fmt.Fprintf(&all, "--- %s\n%s", p.name, text[max(0, len(text)-2000):])
	}
	return all.String()
}

// start starts the process, and starts it again when it ends by itself.
func (p *program) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return nil
	}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := p.command()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	p.cmd, p.ended = cmd, ended
	go func() {
		err := cmd.Wait()
		close(ended)
		if err == nil || !strings.Contains(err.Error(), "killed") {
			pause(context.Background(), 100*time.Millisecond)
			_ = p.start() // its log says why it ended
		}
	}()
	return nil
}

// end kills the process and waits until it is gone.
func (p *program) end() {
	p.mu.Lock()
	cmd, ended := p.cmd, p.ended
	p.mu.Unlock()
	if cmd == nil {
		return
	}
	_ = cmd.Process.Kill() // it may have ended
	<-ended
}

func twoAddresses() (a, b string, err error) {
	var list [2]net.Listener
	for i := range list {
		if list[i], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return "", "", err
		}
		defer list[i].Close()
	}
	return list[0].Addr().String(), list[1].Addr().String(), nil
}

func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
