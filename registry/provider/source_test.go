package provider_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/registry/provider"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/inproc"
	"github.com/toolcrib/toolcrib/tools/toolstest"
)

// The tools of workers pass the suite of every source. The result travels in one
// message, which bounds it.
func TestSource(t *testing.T) {
	toolstest.RunSource(t, toolstest.SourceCase{MaxBig: 4 << 20, Open: func(t *testing.T) *toolstest.Source {
		opts := quick()
		opts.DrainTimeout = time.Second
		c := newCrib(t, opts)
		w := &bench{crib: c, waiting: make(chan struct{}, 64), cancelled: make(chan struct{}, 64)}
		w.start()
		return &toolstest.Source{
			Provider:  c.reg.Source(),
			Echo:      func(text string) toolstest.Probe { return probe("demo.echo", map[string]any{"text": text}) },
			Big:       func(n int) toolstest.Probe { return probe("demo.big", map[string]any{"n": n}) },
			Wait:      probe("demo.wait", map[string]any{}),
			Bad:       probe("demo.echo", map[string]any{"text": 7}),
			Waiting:   w.waiting,
			Cancelled: w.cancelled,
			Stop:      w.stop,
			Start:     w.start,
			Change:    w.change,
			Failures: []toolstest.Failure{
				{Title: "the tool fails", Probe: probe("demo.fail", map[string]any{"how": "plain"}), Class: tools.ErrClassTransient, Delivery: tools.Answered},
				{Title: "it fails for good", Probe: probe("demo.fail", map[string]any{"how": "permanent"}), Class: tools.ErrClassPermanent, Delivery: tools.Answered},
				{Title: "it is overloaded", Probe: probe("demo.fail", map[string]any{"how": "overloaded"}), Class: tools.ErrClassTransient,
					Delivery: tools.NotDelivered, RetryAfter: 3 * time.Second},
				{Title: "it panics", Probe: probe("demo.fail", map[string]any{"how": "panic"}), Class: tools.ErrClassPermanent, Delivery: tools.Answered},
				{Title: "it answers that it failed", Probe: probe("demo.fail", map[string]any{"how": "answer"}), Answer: true},
			},
		}
	}})
}

func probe(name string, args map[string]any) toolstest.Probe {
	raw, _ := json.Marshal(args) // texts and numbers always encode
	return toolstest.Probe{Name: name, Args: raw}
}

// bench is a worker that the suite stops, starts and changes.
type bench struct {
	*crib
	waiting, cancelled chan struct{}

	mu   sync.Mutex
	more int
	end  func() error
}

func (b *bench) start() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end = b.serve("demo", provider.FromCatalog(b.catalog()), provider.Options{MaxConcurrentToolCalls: 16, DrainTimeout: time.Second})
	b.up("demo", 1)
}

func (b *bench) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.end(); err != nil && !errors.Is(err, provider.ErrDrain) {
		b.t.Error(err)
	}
}

// change has another worker serve one more tool.
func (b *bench) change() string {
	b.mu.Lock()
	b.more++
	name := fmt.Sprintf("demo.more%d", b.more)
	b.end = b.serve("demo", provider.FromCatalog(b.catalog()), provider.Options{DrainTimeout: time.Second})
	b.mu.Unlock()
	return name
}

type (
	echoArgs struct {
		Text string `json:"text"`
	}
	bigArgs struct {
		N int `json:"n"`
	}
	failArgs struct {
		How string `json:"how"`
	}
	nothing struct{}
)

func (b *bench) catalog() tools.ToolCatalog {
	cat := tools.NewCatalog()
	read := tools.WithSideEffect(tools.SideEffectRead)
	b.check(errors.Join(
		inproc.RegisterFunc(cat, "demo.echo", func(_ context.Context, in echoArgs) (echoArgs, error) { return in, nil }, read),
		inproc.RegisterFunc(cat, "demo.big", func(_ context.Context, in bigArgs) (echoArgs, error) {
			return echoArgs{strings.Repeat("x", in.N)}, nil
		}, read),
		inproc.RegisterFunc(cat, "demo.wait", func(ctx context.Context, _ nothing) (nothing, error) {
			b.waiting <- struct{}{}
			<-ctx.Done()
			b.cancelled <- struct{}{}
			return nothing{}, ctx.Err()
		}, tools.WithSideEffect(tools.SideEffectWrite)),
		cat.Register(tools.ToolDescriptor{Tool: tools.Tool{Name: "demo.fail", ArgsSchema: json.RawMessage(`{"type":"object"}`)}, Invoke: fail}),
	))
	for i := range b.more {
		b.check(inproc.RegisterFunc(cat, fmt.Sprintf("demo.more%d", i+1), func(_ context.Context, in echoArgs) (echoArgs, error) { return in, nil }, read))
	}
	return cat
}

func fail(_ context.Context, args json.RawMessage) (tools.ToolResult, error) {
	var in failArgs
	if err := json.Unmarshal(args, &in); err != nil {
		return tools.ToolResult{}, err
	}
	switch in.How {
	case "permanent":
		return tools.ToolResult{}, &tools.Error{Class: tools.ErrClassPermanent, Delivery: tools.Answered, Message: "never"}
	case "overloaded":
		return tools.ToolResult{}, &tools.Error{Code: tools.ErrOverloaded, Class: tools.ErrClassTransient, Delivery: tools.NotDelivered,
			RetryAfter: 3 * time.Second, Message: "later"}
	case "panic":
		panic("boom")
	case "answer":
		return tools.ToolResult{IsError: true, Content: []tools.Content{tools.TextContent("no")}}, nil
	}
	return tools.ToolResult{}, errors.New("not today")
}
