// Command report runs every measurement of this folder in one go and prints
// the tables of docs/performance.md. Whatever it prints is a ratio to a floor
// that was measured in the same run, or stands beside one: other machines, and
// this one at another hour, give other times.
//
//	go run ./bench/report                        print the tables
//	go run ./bench/report -o docs/performance.md put them in the place of the old ones
//
// It needs Linux, whose /proc tells what a process used, and the go command.
// npm's mcp-hub takes part when scripts/peers bench has installed it.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// options are the flags.
type options struct {
	only   string
	out    string
	rounds int
	calls  int
	starts int
	peers  string
	beside string
}

func main() {
	var o options
	flag.StringVar(&o.only, "only", "", "measure only this part: process, relay, list or start")
	flag.StringVar(&o.out, "o", "", "document whose tables are replaced; they are printed as well")
	flag.IntVar(&o.rounds, "rounds", 6, "rounds, over which a median is taken")
	flag.IntVar(&o.calls, "calls", 1000, "calls of each contender in a round")
	flag.IntVar(&o.starts, "starts", 9, "starts of each program")
	flag.StringVar(&o.peers, "peers", ".cache/peers-bench", "folder that scripts/peers bench installed into")
	flag.StringVar(&o.beside, "beside", "", "another toolcrib binary that takes part, to compare a change with what was before")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, &o); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o *options) error {
	b, err := build(ctx)
	if err != nil {
		return err
	}
	defer b.remove()
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s\n", machine())
	for _, part := range []struct {
		name    string
		measure func(context.Context, *options, *bench) (string, error)
	}{{"process", inProcess}, {"relay", relay}, {"list", lists}, {"start", start}} {
		if o.only != "" && o.only != part.name {
			continue
		}
		section, err := part.measure(ctx, o, b)
		if err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		text.WriteString("\n" + section)
	}
	if _, err := os.Stdout.Write(text.Bytes()); err != nil {
		return err
	}
	if o.out == "" {
		return nil
	}
	return replaceTables(o.out, text.String())
}

const (
	tablesBegin = "<!-- tables: go run ./bench/report -o docs/performance.md -->\n"
	tablesEnd   = "<!-- end of tables -->"
)

// replaceTables puts text between the two marks of a document.
func replaceTables(file, text string) error {
	doc, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(doc), tablesBegin)
	_, after, ended := strings.Cut(rest, tablesEnd)
	if !ok || !ended {
		return errors.New(file + ": the marks around the tables are missing")
	}
	return os.WriteFile(file, []byte(before+tablesBegin+text+tablesEnd+after), 0o644)
}

// bench is what was built for a run.
type bench struct {
	dir string
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

func (b *bench) remove() { _ = os.RemoveAll(b.dir) }
