package natsserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/toolcrib/toolcrib/registry/stream"
)

// groups sync the files of streams, once for all who wait. The server has written
// an event to a file when it answers; syncing the file is then possible from
// outside of the server.
type groups struct {
	dir     string // of the streams
	enabled bool

	mu      sync.Mutex
	streams map[string]*group
}

// group syncs one stream. While a round runs, those who come wait for the next,
// which covers all that they wrote.
type group struct {
	dir string // of the stream

	mu      sync.Mutex
	running bool
	next    *round
	last    string // the newest file when the last round ended
}

// round is one sync, which several wait for.
type round struct {
	done chan struct{}
	err  error
}

func newGroups(dir string, enabled bool) *groups {
	return &groups{dir: dir, enabled: enabled, streams: map[string]*group{}}
}

// Persist returns when what the server has written of a stream is on disk.
func (g *groups) Persist(ctx context.Context, name string) error {
	if !g.enabled {
		return nil
	}
	g.mu.Lock()
	one := g.streams[name]
	if one == nil {
		one = &group{dir: filepath.Join(g.dir, name)}
		g.streams[name] = one
	}
	g.mu.Unlock()
	return one.wait(ctx)
}

func (g *group) wait(ctx context.Context) error {
	g.mu.Lock()
	if g.next == nil {
		g.next = &round{done: make(chan struct{})}
	}
	mine := g.next
	if !g.running {
		g.running = true
		go g.run()
	}
	g.mu.Unlock()
	select {
	case <-mine.done:
		return mine.err
	case <-ctx.Done():
		return fmt.Errorf("%w: not synced: %w", stream.ErrUnavailable, ctx.Err())
	}
}

// run makes rounds while somebody waits for one.
func (g *group) run() {
	for {
		g.mu.Lock()
		now := g.next
		g.next = nil
		g.running = now != nil
		g.mu.Unlock()
		if now == nil {
			return
		}
		if err := g.sync(); err != nil {
			now.err = fmt.Errorf("%w: not synced: %w", stream.ErrUnavailable, err)
		}
		close(now.done)
	}
}

// sync syncs the files that may have been written since the last round: the
// newest of that time and those after it. The server makes a new file whenever
// the last event of one is acknowledged. A round that finds one syncs the folder
// it is in too, and the first round all that the stream is made of.
func (g *group) sync() error {
	messages := filepath.Join(g.dir, "msgs")
	entries, err := os.ReadDir(messages)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // The stream was destroyed.
	}
	if err != nil {
		return err
	}
	newest := newestBlock(entries)
	for _, entry := range entries {
		if name := entry.Name(); isBlock(name) && !older(name, g.last) {
			if err := syncFile(filepath.Join(messages, name)); err != nil {
				return err
			}
		}
	}
	if g.last != newest {
		err = g.syncFolders(messages)
	}
	if err == nil {
		g.last = newest
	}
	return err
}

func (g *group) syncFolders(messages string) error {
	names := []string{messages}
	if g.last == "" {
		names = append(names, filepath.Join(g.dir, "meta.inf"), filepath.Join(g.dir, "meta.sum"), g.dir, filepath.Dir(g.dir))
	}
	for _, name := range names {
		if err := syncFile(name); err != nil {
			return err
		}
	}
	return nil
}

// A file of messages has a number as its name: 12.blk.
func isBlock(name string) bool { return strings.HasSuffix(name, ".blk") }

// older reports whether the number of a file is the smaller.
func older(name, than string) bool {
	return len(name) < len(than) || len(name) == len(than) && name < than
}

func newestBlock(entries []fs.DirEntry) string {
	newest := ""
	for _, entry := range entries {
		if name := entry.Name(); isBlock(name) && older(newest, name) {
			newest = name
		}
	}
	return newest
}

// syncFile syncs a file or folder. One that is gone holds nothing any more.
func syncFile(name string) error {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
