package builtin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/search"
	"github.com/toolcrib/toolcrib/view"
)

// The names of the meta-tools.
const (
	SearchName = view.SearchTool
	GetName    = "tool_get"
	CallName   = "tool_call"
)

// MetaNames lists the meta-tools, sorted.
func MetaNames() []string { return []string{CallName, GetName, SearchName} }

// MetaOptions configure the meta-tools.
type MetaOptions struct {
	// Memory keeps what callers find, unless there is a memory on the context
	// of a call ([view.WithMemory]), which then is the one. With neither, what
	// is found is shown and not remembered.
	Memory view.Memory
	// Index finds tools. Nil is a new one.
	Index *search.Index
	// Loading is that of the meta-tools. Empty, they are declared to a caller
	// while anything is deferred for it.
	Loading tools.LoadingMode
}

// RegisterMeta adds tool_search, tool_get and tool_call to a catalog, or those of
// them that are named. Nil options are the defaults.
func RegisterMeta(cat tools.LiveCatalog, opts *MetaOptions, names ...string) error {
	if len(names) == 0 {
		names = MetaNames()
	}
	for _, name := range names {
		if err := registerMeta(cat, opts, name); err != nil {
			return fmt.Errorf("builtin: %s: %w", name, err)
		}
	}
	return nil
}

func registerMeta(cat tools.LiveCatalog, opts *MetaOptions, name string) error {
	m := &meta{cat: cat}
	if opts != nil {
		m.opts = *opts
	}
	if m.opts.Index == nil {
		m.opts.Index = search.New(nil)
	}
	switch name {
	case SearchName:
		return cat.Register(m.search())
	case GetName:
		return cat.Register(m.get())
	case CallName:
		return cat.Register(m.call())
	}
	return fmt.Errorf("%w; expected one of %s", ErrUnknown, strings.Join(MetaNames(), ", "))
}

// meta is the meta-tools of one catalog.
type meta struct {
	cat  tools.LiveCatalog
	opts MetaOptions
}

func (m *meta) descriptor(t tools.Tool, invoke tools.Invoker, opts ...tools.DescriptorOption) tools.ToolDescriptor {
	opts = append(opts, tools.WithKind(tools.KindMeta), tools.WithLoading(m.opts.Loading), tools.WithCategory("discovery"), tools.WithInline())
	return tools.ResolveOptions(opts...).Descriptor(t, invoke)
}

// remember keeps what the caller on ctx was shown. It does not fail the call
// that showed it.
func (m *meta) remember(ctx context.Context, names ...string) error {
	mem, ok := view.MemoryFrom(ctx)
	if !ok {
		mem = m.opts.Memory
	}
	if mem == nil || len(names) == 0 {
		return nil
	}
	return mem.Add(ctx, names...)
}

// answer is a result that a model reads as JSON, once: programs find the same in
// Value.
func answer(v any) (tools.ToolResult, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return tools.ToolResult{}, err
	}
	return tools.ToolResult{Value: v, Content: []tools.Content{tools.TextContent(string(rawjson.UnescapeHTML(raw)))}}, nil
}

// GetArgs are the arguments of tool_get.
type GetArgs struct {
	Name string `json:"name"`
}

// GetResult is the result of tool_get. A tool that does not exist, or that the
// caller may not see, is an answer with Found false and an Error that says so.
type GetResult struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	ArgsSchema  json.RawMessage `json:"args_schema,omitempty"`
	Found       bool            `json:"found"`
	Error       string          `json:"error,omitempty"`
}

func (m *meta) get() tools.ToolDescriptor {
	return m.descriptor(tools.Tool{Name: GetName,
		Description: "Show a tool's description and args_schema by its exact name. You can call it from your next turn on.",
		ArgsSchema:  json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`),
	}, m.runGet, tools.WithSideEffect(tools.SideEffectRead))
}

func (m *meta) runGet(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
	var in GetArgs
	if err := json.Unmarshal(args, &in); err != nil {
		return tools.ToolResult{}, err
	}
	t, ok := view.From(ctx, m.cat).Tool(in.Name)
	if !ok {
		return answer(m.missing(ctx, in.Name))
	}
	out := GetResult{Name: t.Name, Description: describe(&t), ArgsSchema: schemaOf(&t), Found: true}
	if t.Kind != tools.KindMeta {
		if err := m.remember(ctx, t.Name); err != nil {
			out.Error = notRemembered
		}
	}
	return answer(out)
}

// notRemembered is what a caller is told when its memory fails: the tool can
// still be called by its name.
const notRemembered = "the find could not be kept; use " + CallName

// describe returns the description and, below it, the safety notes.
func describe(t *tools.Tool) string {
	if t.SafetyNotes == "" || t.Description == "" {
		return t.Description + t.SafetyNotes
	}
	return t.Description + "\n\n" + t.SafetyNotes
}

func schemaOf(t *tools.Tool) json.RawMessage {
	return json.RawMessage(cmp.Or(string(t.ArgsSchema), `{"type":"object"}`))
}

// suggested is how many names the answer for an unknown one offers.
const suggested = 3

// missing is the same for a name that does not exist and for one that the
// caller may not see.
func (m *meta) missing(ctx context.Context, name string) GetResult {
	name = cut(name, 128)
	out := GetResult{Name: name, Error: "there is no tool of this name"}
	found, err := Find(ctx, m.cat, m.opts.Index, search.Query{Text: name, Limit: suggested})
	if err != nil || found.Weak || len(found.Hits) == 0 {
		return out
	}
	names := make([]string, len(found.Hits))
	for i, h := range found.Hits {
		names[i] = h.Name
	}
	out.Error += "; perhaps " + strings.Join(names, ", ")
	return out
}

// CallArgs are the arguments of tool_call. It takes "arguments" for "args" too,
// as that is what a call of MCP has, and nothing else.
type CallArgs struct {
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

func (m *meta) call() tools.ToolDescriptor {
	return m.descriptor(tools.Tool{Name: CallName,
		Description: "Call a tool that you found but is not in your list. args must match its args_schema.",
		ArgsSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"},"args":{"type":"object"}},` +
			`"required":["name"]}`),
	}, neverRun, tools.WithRedirect(redirect))
}

func neverRun(context.Context, json.RawMessage) (tools.ToolResult, error) {
	return tools.ToolResult{}, fmt.Errorf("builtin: %s is not run itself", CallName)
}

func redirect(_ context.Context, args json.RawMessage) (string, json.RawMessage, error) {
	in, err := readCall(args)
	return in.Name, in.Args, err
}

// readCall takes no member that it does not know: what is meant for the tool
// would be lost without a word.
func readCall(args json.RawMessage) (in CallArgs, err error) {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(args, &given); err != nil {
		return in, fmt.Errorf("the arguments cannot be read: %w", err)
	}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		switch value := given[key]; {
		case key == "name":
			err = json.Unmarshal(value, &in.Name)
		case key != "args" && key != "arguments":
			err = fmt.Errorf("unexpected property %q; expected name and args, an object with the tool's arguments", cut(key, 64))
		case in.Args != nil:
			err = errors.New("args and arguments are the same; give one of them")
		case rawjson.KindOf(value) != rawjson.KindObject:
			err = fmt.Errorf("%s: expected an object", key)
		default:
			in.Args = value
		}
		if err != nil {
			return CallArgs{}, err
		}
	}
	return in, nil
}
