package demo

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/toolcrib/toolcrib/gateway"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/inproc"
)

// ServeMCP is the demonstration's MCP server: a notebook in memory, served on
// a pair of pipes until in ends.
func ServeMCP(ctx context.Context, in io.Reader, out io.Writer) (err error) {
	book := &notebook{}
	g, err := gateway.Open(ctx, nil, &gateway.Options{Register: []func(tools.ToolCatalog) error{book.register}})
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		err = errors.Join(err, g.Close(closing))
	}()
	return g.ServeStdio(ctx, in, out)
}

// notebook holds notes. It is safe for concurrent use.
type notebook struct {
	mu    sync.Mutex
	notes []Note
}

// Note is one note.
type Note struct {
	ID   int      `json:"id"`
	Text string   `json:"text"`
	Tags []string `json:"tags,omitempty"`
}

// AddArgs are the arguments of add.
type AddArgs struct {
	Text string   `json:"text" jsonschema:"what to remember"`
	Tags []string `json:"tags,omitempty" jsonschema:"words to find the note by"`
}

// ListArgs are the arguments of list.
type ListArgs struct {
	Tag string `json:"tag,omitempty" jsonschema:"only notes with this tag"`
}

// Notes is the result of list.
type Notes struct {
	Notes []Note `json:"notes"`
}

// CountArgs are the arguments of countdown.
type CountArgs struct {
	From int `json:"from" jsonschema:"where to begin, from 1 to 100"`
	Ms   int `json:"ms,omitempty" jsonschema:"pause between two numbers in milliseconds, at most 1000"`
}

// CountResult is the result of countdown.
type CountResult struct {
	Counted int `json:"counted"`
}

func (b *notebook) register(cat tools.ToolCatalog) error {
	return errors.Join(
		inproc.RegisterFunc(cat, "add", b.add,
			tools.WithDescription("Write a note into the notebook."),
			tools.WithSideEffect(tools.SideEffectWrite)),
		inproc.RegisterFunc(cat, "list", b.list,
			tools.WithDescription("Read the notes of the notebook, all or those with one tag."),
			tools.WithSideEffect(tools.SideEffectRead)),
		inproc.RegisterFunc(cat, "countdown", countdown,
			tools.WithDescription("Count down slowly and tell the progress; useful to try progress and cancellation."),
			tools.WithSideEffect(tools.SideEffectPure)),
	)
}

func (b *notebook) add(_ context.Context, in AddArgs) (Note, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	note := Note{ID: len(b.notes) + 1, Text: in.Text, Tags: in.Tags}
	b.notes = append(b.notes, note)
	return note, nil
}

func (b *notebook) list(_ context.Context, in ListArgs) (Notes, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := Notes{Notes: []Note{}}
	for _, n := range b.notes {
		if in.Tag == "" || slices.Contains(n.Tags, in.Tag) {
			out.Notes = append(out.Notes, n)
		}
	}
	return out, nil
}

func countdown(ctx context.Context, in CountArgs) (CountResult, error) {
	if in.From < 1 || in.From > 100 || in.Ms < 0 || in.Ms > 1000 {
		return CountResult{}, refuse("from is 1 to 100 and ms at most 1000")
	}
	tick := time.NewTicker(max(time.Duration(in.Ms)*time.Millisecond, time.Microsecond))
	defer tick.Stop()
	for n := range in.From {
		select {
		case <-ctx.Done():
			return CountResult{}, ctx.Err()
		case <-tick.C:
		}
		if err := tools.Progress(ctx, float64(n+1), float64(in.From), ""); err != nil {
			return CountResult{}, err
		}
	}
	return CountResult{Counted: in.From}, nil
}
