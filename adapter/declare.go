package adapter

import (
	"encoding/json"
	"fmt"

	"github.com/toolcrib/toolcrib/adapter/subset"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// Loss is one thing of a tool's schema that the provider's form does not
// enforce. The door checks every call against the tool's own schema, so that a
// call that breaks it comes back to the model as an error.
type Loss struct {
	// Tool is the canonical name.
	Tool string
	// Path is the JSON Pointer of the place in the tool's schema.
	Path string
	// Feature is the keyword, or what the matter is about.
	Feature string
	// Reason says why, and what stands in its place.
	Reason string
}

// String returns the loss in one line.
func (l Loss) String() string { return l.Tool + " " + "#" + l.Path + " " + l.Feature + ": " + l.Reason }

// Quarantine is a tool that is not declared, and why.
type Quarantine struct {
	// Tool is the canonical name.
	Tool string
	// Reason is a sentence for an operator.
	Reason string
}

// Declaration is one declared tool. It must not be changed.
type Declaration struct {
	// Tool is the canonical name.
	Tool string
	// Wire is the name that the provider is shown.
	Wire string
	// Description is the text that the provider is shown.
	Description string
	// Schema is the schema of the arguments in the provider's form.
	Schema json.RawMessage
	// Deferred says that the provider's own search finds the tool.
	Deferred bool
	// JSON is the provider's tool object.
	JSON json.RawMessage

	form     *subset.Form
	group    string
	examples []json.RawMessage // in the provider's form
	original *tools.Tool
}

// Declarations are the tools of one exposure in a provider's form, and the way
// back. They are immutable and safe for concurrent use.
type Declarations struct {
	// Tools are the declared tools, in the order in which they were given.
	Tools []Declaration
	// Losses is what the provider does not enforce.
	Losses []Loss
	// Quarantined lists the tools that are left out.
	Quarantined []Quarantine

	adapter *Adapter
	byWire  map[string]int
	byTool  map[string]int
}

// Declare compiles tools into the provider's form. Whatever the tools are, those
// that have a form are declared: one that has none, and what exceeds the
// number that a provider takes, is left out alone. Of tools with the same name
// the first is declared.
func (a *Adapter) Declare(list []tools.Tool) *Declarations {
	d := &Declarations{adapter: a, byWire: map[string]int{}, byTool: map[string]int{}}
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Name
	}
	wires := a.names.wireNames(names)
	direct := 0
	for i := range list {
		t := &list[i]
		if _, twice := d.byTool[t.Name]; twice {
			continue
		}
		deferred := a.Defers() && t.Loading == tools.LoadingDeferred
		if !deferred && a.maxTools > 0 && direct == a.maxTools {
			d.quarantine(t.Name, fmt.Sprintf("%s takes at most %d tools at once", a.provider, a.maxTools))
			continue
		}
		if d.add(t, wires[t.Name], deferred) && !deferred {
			direct++
		}
	}
	return d
}

// form returns the form of a schema.
func (a *Adapter) form(schema json.RawMessage) (*subset.Form, error) {
	return a.forms.get(schema, func(raw json.RawMessage) (*subset.Form, error) { return a.wire.compile(raw, a.profile) })
}

func (d *Declarations) quarantine(tool, reason string) {
	d.Quarantined = append(d.Quarantined, Quarantine{Tool: tool, Reason: reason})
}

// add compiles one tool, and reports whether it is declared.
func (d *Declarations) add(t *tools.Tool, wire string, deferred bool) bool {
	if err := tools.CheckName(t.Name); err != nil {
		d.quarantine(t.Name, err.Error())
		return false
	}
	visible, err := withoutInjected(t)
	if err != nil {
		d.quarantine(t.Name, err.Error())
		return false
	}
	form, err := d.adapter.form(visible)
	if err != nil {
		d.quarantine(t.Name, err.Error())
		return false
	}
	decl := Declaration{Tool: t.Name, Wire: wire, Schema: form.Schema, Deferred: deferred, form: form, original: t, group: t.Namespace}
	decl.examples = examplesOf(t, form)
	decl.Description = d.adapter.wire.describe(&decl)
	decl.JSON = d.adapter.wire.declare(&decl)
	decl.original = nil // the caller's
	for _, l := range form.Losses {
		d.Losses = append(d.Losses, Loss{Tool: t.Name, Path: l.Path, Feature: l.Feature, Reason: l.Reason})
	}
	d.byWire[wire], d.byTool[t.Name] = len(d.Tools), len(d.Tools)
	d.Tools = append(d.Tools, decl)
	return true
}

// Tool returns the declared tool of a canonical name.
func (d *Declarations) Tool(canonical string) (Declaration, bool) {
	i, ok := d.byTool[canonical]
	if !ok {
		return Declaration{}, false
	}
	return d.Tools[i], true
}

// Canonical returns the canonical name of the tool that the provider is shown
// under a wire name.
func (d *Declarations) Canonical(wire string) (string, bool) {
	i, ok := d.byWire[wire]
	if !ok {
		return "", false
	}
	return d.Tools[i].Tool, true
}

// Adapter returns the adapter that made the declarations.
func (d *Declarations) Adapter() *Adapter { return d.adapter }

// JSON returns the array of tool objects, as the request member of the provider
// holds it.
func (d *Declarations) JSON() json.RawMessage { return d.adapter.wire.list(d) }

// Request returns an object with the members of a request that concern tools,
// for a caller to lay over its own: "tools", and "parallel_tool_calls",
// "tool_choice" or "toolConfig" where the provider has them. Without a declared
// tool it is empty.
func (d *Declarations) Request() json.RawMessage {
	if len(d.Tools) == 0 {
		return json.RawMessage(`{}`)
	}
	return d.adapter.wire.request(d)
}

// Body returns a request body: own, which is encoded as JSON and must be an
// object, with the members of Request laid over it, byte for byte.
func (d *Declarations) Body(own any) (json.RawMessage, error) {
	body, err := json.Marshal(own)
	if err == nil && rawjson.KindOf(body) != rawjson.KindObject {
		err = fmt.Errorf("adapter: a request body is an object, and not %s", rawjson.KindOf(body))
	}
	for it := rawjson.Object(d.Request()); err == nil && it.Next(); {
		body, err = rawjson.Set(body, it.Key(), it.Value())
	}
	return body, err
}
