package turn_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/turn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// crib is a catalog whose events are kept.
type crib struct {
	t   *testing.T
	cat tools.LiveCatalog
	bus *events.Bus
	sub *events.Subscription
}

func newCrib(t *testing.T, opts ...tools.CatalogOption) *crib {
	t.Helper()
	registry, err := events.NewRegistry(append(tools.EventDefinitions(), turn.EventDefinitions()...)...)
	if err != nil {
		t.Fatal(err)
	}
	bus := events.NewBus(registry)
	c := &crib{t: t, bus: bus, sub: bus.Subscribe(events.Filter{}, &events.SubscribeOptions{Buffer: 10_000})}
	t.Cleanup(c.sub.Close)
	opts = append(opts, tools.WithEvents(bus), tools.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	c.cat = tools.NewCatalog(opts...).(tools.LiveCatalog)
	return c
}

// add registers a tool that runs invoke; nil answers with its arguments.
func (c *crib) add(tool tools.Tool, invoke tools.Invoker, opts ...tools.DescriptorOption) *crib {
	c.t.Helper()
	if invoke == nil {
		invoke = echo
	}
	if tool.Policy.MaxRetries == 0 {
		tool.Policy.MaxRetries = -1
	}
	if err := c.cat.Register(tools.ResolveOptions(opts...).Descriptor(tool, invoke)); err != nil {
		c.t.Fatal(err)
	}
	return c
}

func echo(_ context.Context, args json.RawMessage) (tools.ToolResult, error) {
	return tools.ToolResult{Value: args}, nil
}

// caller is a context with an identity and a bus that nobody else uses.
func caller(scopes ...string) context.Context {
	return identity.With(context.Background(), identity.Identity{TenantID: "t", UserID: "u", SessionID: "s"}, scopes...)
}

// begin begins a turn of a run of its own.
func (c *crib) begin(ctx context.Context, opts *turn.Options) *turn.Turn {
	c.t.Helper()
	tn, err := turn.New(c.cat, opts).Begin(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	return tn
}

// execute runs calls in a turn of their own and expects no error.
func (c *crib) execute(opts *turn.Options, calls ...turn.Call) []turn.Result {
	c.t.Helper()
	results, err := c.begin(caller(), opts).Execute(caller(), calls)
	if err != nil {
		c.t.Fatal(err)
	}
	return results
}

// heard returns what was published since it was asked last, but for changes of
// the catalog.
func (c *crib) heard() []events.Event {
	var list []events.Event
	for {
		select {
		case e := <-c.sub.Events():
			if e.Type != tools.EventTypeCatalogChanged {
				list = append(list, e)
			}
		default:
			return list
		}
	}
}

// story is the events as "type tool", in order.
func story(list []events.Event) []string {
	out := make([]string, len(list))
	for i, e := range list {
		out[i] = string(e.Type) + " " + e.Tool
	}
	return out
}

var terminals = []events.EventType{tools.EventTypeToolCompleted, tools.EventTypeToolFailed, tools.EventTypeToolInvalidArgs,
	tools.EventTypeToolDenied, tools.EventTypeToolUnknown}

func countTerminal(list []events.Event) int {
	n := 0
	for _, e := range list {
		if slices.Contains(terminals, e.Type) {
			n++
		}
	}
	return n
}

func call(id, name, args string) turn.Call {
	return turn.Call{ID: id, Name: name, Args: json.RawMessage(args)}
}

func statuses(list []turn.Result) []turn.Status {
	out := make([]turn.Status, len(list))
	for i, r := range list {
		out[i] = r.Status
	}
	return out
}

// want fails unless the results have these statuses.
func want(t *testing.T, results []turn.Result, list ...turn.Status) {
	t.Helper()
	if got := statuses(results); !slices.Equal(got, list) {
		t.Errorf("statuses %v, want %v: %s", got, list, texts(results))
	}
}

func texts(results []turn.Result) string {
	var b strings.Builder
	for _, r := range results {
		fmt.Fprintf(&b, "\n%s: %s", r.Status, r.Text())
	}
	return b.String()
}

// object is the schema of an object with these members, all optional.
func object(members string) json.RawMessage {
	return json.RawMessage(`{"type":"object","properties":{` + members + `},"additionalProperties":false}`)
}

var readOnly = tools.Safety{ReadOnly: tools.Yes}
