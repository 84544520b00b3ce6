package gateway

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"

	"github.com/toolcrib/toolcrib/artifacts"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/builtin"
	"github.com/toolcrib/toolcrib/tools/mcptool"
	"github.com/toolcrib/toolcrib/view"
)

// What clients of MCP get of large results.
const (
	resultsBounded = "bounded"
	resultsFull    = "full"
)

// artifactFolder holds the content of artifacts in the data folder.
const artifactFolder = "artifacts"

// sweepEvery is how often artifacts that have expired are looked for.
const sweepEvery = 10 * time.Minute

// openArtifacts opens the store of large results in the data folder. Without
// one, they are kept in a folder of their own, which is made for the first of them
// and goes with the gateway.
func (g *Gateway) openArtifacts(dir string) error {
	opts := g.cfg.Artifacts.options(g)
	if dir == "" {
		memory, folder := newPassing(), &scratch{}
		opts.OpenBucket = folder.open
		g.dropData = func() error { return errors.Join(memory.Close(), folder.Close()) }
		g.kept = artifacts.New(nil, memory, opts)
		g.sweeping.Go(func() { g.clearThenSweep(memory.opened) })
		return nil
	}
	bucket, err := openFolder(filepath.Join(dir, artifactFolder))
	if err != nil {
		return fmt.Errorf("gateway: the folder of large results cannot be opened: %w", err)
	}
	g.bucket = bucket
	g.kept = artifacts.New(bucket, g.store, opts)
	g.sweeping.Go(func() { g.kept.Run(g.life, sweepEvery) })
	return nil
}

func openFolder(dir string) (*blob.Bucket, error) {
	return fileblob.OpenBucket(dir, &fileblob.Options{CreateDir: true, DirFileMode: 0o700, NoTempDir: true, Metadata: fileblob.MetadataDontWrite})
}

// clearThenSweep removes what gateways that were killed have left, and sweeps.
func (g *Gateway) clearThenSweep(inUse <-chan struct{}) {
	if err := clearScratch(os.TempDir()); err != nil {
		g.log.Warn("large results of programs that were killed could not all be removed", "error", err)
	}
	g.sweep(inUse)
}

// sweep removes what has expired, until the gateway ends, once there can be
// something.
func (g *Gateway) sweep(inUse <-chan struct{}) {
	select {
	case <-inUse:
		g.kept.Run(g.life, sweepEvery)
	case <-g.life.Done():
	}
}

func (a *Artifacts) options(g *Gateway) *artifacts.Options {
	return &artifacts.Options{
		TTL:      time.Duration(a.TTL),
		MaxBytes: a.MaxBytes,
		Tenant:   artifacts.Quota{Bytes: a.TenantBytes},
		User:     artifacts.Quota{Bytes: a.UserBytes},
		Logger:   g.log,
		Sees:     g.seesArtifact,
	}
}

// seesArtifact reports whether the caller on ctx is shown an artifact of its own:
// in a toolset only those of the tools that it sees there, and what it stored
// itself.
func (g *Gateway) seesArtifact(ctx context.Context, info artifacts.Info) bool {
	filter := tools.CallFrom(ctx).Filter(ctx)
	return filter.PartClass() == "" || info.Tool == "" || g.cat.Snapshot().Visible(filter).Has(info.Tool)
}

// scratchFolder holds, in the data folder, what is too long for memory before it is
// kept. Its files have no names but for a moment, except on Windows.
const scratchFolder = "scratch"

// scratch returns where long answers of MCP servers wait. In a message, content
// can have twice the bytes that it has when it is kept.
func (a *Artifacts) scratch(dir string) *mcptool.Scratch {
	opts := &mcptool.ScratchOptions{MaxMessageBytes: 2 * a.MaxBytes, MaxTotalBytes: a.TenantBytes}
	if dir == "" {
		return mcptool.NewScratch(opts)
	}
	opts.Dir = filepath.Join(dir, scratchFolder)
	s := mcptool.NewScratch(opts)
	s.Clear()
	return s
}

// closeArtifacts ends the use of the store of large results.
func (g *Gateway) closeArtifacts() error {
	g.sweeping.Wait()
	var err error
	if g.bucket != nil {
		err = g.bucket.Close()
	}
	if g.dropData != nil {
		err = errors.Join(err, g.dropData())
	}
	return err
}

// Artifacts returns the store of large results. Whose they are is on the context
// of each call; see LocalContext.
func (g *Gateway) Artifacts() *artifacts.Store { return g.kept }

// bounder makes results small for models, and has the tool that reads the rest
// declared to whoever has something to read.
func (g *Gateway) bounder() *bounder {
	return &bounder{g, g.kept.Bounder(&artifacts.Bounds{Threshold: g.config().Artifacts.HeavyOutputThresholdBytes, Handlers: g.handlers})}
}

type bounder struct {
	g *Gateway
	*artifacts.Bounder
}

// Bound implements the interfaces of the entrances.
func (b *bounder) Bound(ctx context.Context, tool *tools.Tool, res tools.ToolResult) (tools.ToolResult, error) {
	small, err := b.Bounder.Bound(ctx, tool, res)
	if err != nil || len(small.Artifacts) == 0 {
		return small, err
	}
	mem, ok := view.MemoryFrom(ctx)
	if !ok {
		mem = b.g.found
	}
	if err := mem.Add(ctx, builtin.FetchName); err != nil {
		b.g.log.WarnContext(ctx, "the tool that reads large results is not listed", "tool", builtin.FetchName, "error", err)
	}
	return small, nil
}

// handlers names the tools that the caller on ctx sees and that say they take a
// media type.
func (g *Gateway) handlers(ctx context.Context, mime string) []string {
	var names []string
	for _, t := range view.Memo(view.From(ctx, g.cat), handlersKey{}, takers) {
		if t.MatchesMIME(mime) {
			names = append(names, t.Name)
		}
	}
	return names
}

type handlersKey struct{}

func takers(v view.View) []tools.Tool {
	return slices.DeleteFunc(v.Tools(), func(t tools.Tool) bool { return len(t.HandlesMIME) == 0 })
}

// bounds reports whether clients of MCP get large results in part. A transparent
// entrance passes everything on.
func (m *MCP) bounds() bool {
	switch m.Results {
	case resultsBounded:
		return true
	case resultsFull:
		return false
	}
	return m.Discovery != view.ModeFull
}

// registerFetch adds the tool that reads large results. It is declared to all
// callers if the operator offers it, and otherwise to those who have some.
func (g *Gateway) registerFetch() error {
	if g.cfg.Tools.offers(builtin.FetchName) {
		return builtin.RegisterFetch(g.cat, g.kept)
	}
	return builtin.RegisterFetch(g.cat, g.kept, tools.WithKind(tools.KindMeta), tools.WithLoading(tools.LoadingDeferred))
}
