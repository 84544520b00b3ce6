package main

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolcrib/toolcrib/registry/provider"
	"github.com/toolcrib/toolcrib/registry/stream/connect"
	"github.com/toolcrib/toolcrib/registry/stream/natsserver"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/inproc"
)

// effects is the file to which the tool with effects adds a line for each run.
const effects = "effects"

type named struct {
	ID string `json:"id"`
}

// beWorker serves a tool that has an effect, and one that only reads.
func beWorker(ctx context.Context, o *options) error {
	file, err := os.OpenFile(filepath.Join(o.dir, effects), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	cat := tools.NewCatalog()
	write := func(ctx context.Context, in named) (named, error) {
		_, err := fmt.Fprintln(file, in.ID)
		pause(ctx, rand.N(10*time.Millisecond)) // so that kills meet calls that had their effect
		return in, err
	}
	read := func(_ context.Context, in named) (named, error) { return in, nil }
	if err := inproc.RegisterFunc(cat, "rely.write", write, tools.WithSideEffect(tools.SideEffectWrite)); err != nil {
		return err
	}
	if err := inproc.RegisterFunc(cat, "rely.read", read, tools.WithSideEffect(tools.SideEffectRead)); err != nil {
		return err
	}
	client, err := connect.Client(ctx, "nats://"+o.server, &connect.Options{Token: token})
	if err != nil {
		return err
	}
	defer client.Close()
	return provider.Serve(ctx, client, "rely", provider.FromCatalog(cat), provider.Options{Pong: provider.Pong(client, ""), MaxConcurrentToolCalls: 8})
}

// beServer runs the stream server.
func beServer(ctx context.Context, o *options) error {
	server, err := natsserver.Start(filepath.Join(o.dir, "streams"), &natsserver.Options{Address: o.server, Token: token})
	if err != nil {
		return err
	}
	<-ctx.Done()
	return server.Close()
}

// readEffects returns how often the tool with effects ran for each call.
func readEffects(dir string) (map[string]int, error) {
	file, err := os.Open(filepath.Join(dir, effects))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	runs := map[string]int{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		runs[strings.TrimSpace(lines.Text())]++
	}
	return runs, lines.Err()
}
