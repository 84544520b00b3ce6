package httptool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/schema"
	"github.com/toolcrib/toolcrib/tools"
)

// A reader turns the operations of one document into tools.
type reader struct {
	*OpenAPI
	lib                 *library
	requests, responses *schemas
	auth                *Auth            // for operations that bound has nothing for
	bound               map[string]*Auth // by security scheme
	keys                []Auth           // the places of the document's API keys
	problems            []error
}

func (r *reader) tool(o *operation, name string) (tools.ToolDescriptor, error) {
	server, err := r.target(o)
	if err != nil {
		return tools.ToolDescriptor{}, err
	}
	auth := r.credentials(o)
	b := formBuilder{schemas: r.requests, hidden: r.hides(auth)}
	if err := b.build(r.lib, o); err != nil {
		return tools.ToolDescriptor{}, err
	}
	args, err := rawjson.Compact(b.form.schema)
	if err != nil {
		return tools.ToolDescriptor{}, o.node.errorf("the schema of the arguments: %v", err)
	}
	t := tools.Tool{
		Name: name, SourceName: o.sourceName(), Title: title(o), Description: o.description(), Tags: o.tags(),
		ArgsSchema: args, Source: r.SourceID(), Transport: tools.TransportHTTP, Namespace: r.cfg.Name, Policy: r.cfg.Policy,
	}
	t.SideEffects, t.Safety = effects(o.method)
	response, accept := r.response(o)
	t.OutSchema = response
	t.Examples = examples(args, b.form.example)
	e := &endpoint{
		caller: r.caller, label: o.label(), method: o.method, base: server, path: splitPath(o.path),
		params: b.form.params, body: b.form.body, accept: accept,
		headers: r.cfg.Headers, hidden: secretValues(r.cfg.Headers), auth: auth, structured: response != nil,
	}
	return tools.ResolveOptions(r.cfg.Options...).Descriptor(t, e.invoke), nil
}

func (r *reader) target(o *operation) (string, error) {
	server := r.server
	if server == nil {
		var err error
		if server, err = r.lib.server(o); err != nil {
			return "", unsupported(err)
		}
		if err := r.caller.checkFound(server); err != nil {
			return "", unsupported(fmt.Errorf("server %s: %w", shownLocation(server.String()), err))
		}
	}
	return server.Scheme + "://" + server.Host + strings.TrimRight(server.EscapedPath(), "/"), nil
}

func title(o *operation) string {
	const longest = 80 // characters that a list has room for
	if s := strings.TrimSpace(o.node.text("summary")); len(s) <= longest {
		return s
	}
	return ""
}

// effects classifies a method by what RFC 9110 says of it.
func effects(method string) (tools.SideEffect, tools.Safety) {
	s := tools.Safety{OpenWorld: tools.Yes}
	switch {
	case safeMethod(method):
		s.ReadOnly, s.Idempotent = tools.Yes, tools.Yes
		return tools.SideEffectRead, s
	case method == http.MethodPut:
		s.Idempotent = tools.Yes
	case method == http.MethodDelete:
		s.Idempotent, s.Destructive = tools.Yes, tools.Yes
	}
	s.ReadOnly = tools.No
	return tools.SideEffectWrite, s
}

// response returns the schema of the results, and what to accept.
func (r *reader) response(o *operation) (json.RawMessage, string) {
	n, err := r.success(o)
	if err != nil {
		r.problems = append(r.problems, err)
		return nil, "*/*"
	}
	if r.lib.root.swagger() {
		n = r.lib.swaggerContent(o, "produces", n.child("schema").raw, node{doc: n.doc, pointer: n.pointer})
	}
	var kinds, others []string
	var source node
	for media, content := range n.child("content").members {
		if content, err = r.lib.deref(content); err != nil {
			r.problems = append(r.problems, err)
			continue
		}
		kind := bareMedia(media)
		if strings.ContainsRune(kind, '*') {
			kind = "application/json"
		}
		switch {
		case isJSON(kind) && !slices.Contains(kinds, kind):
			kinds = append(kinds, kind)
		case httpguts.ValidHeaderFieldValue(kind) && !slices.Contains(others, kind):
			others = append(others, kind)
		}
		if isJSON(kind) && !source.ok() {
			source = content.child("schema")
		}
	}
	accept := accepted(kinds, others)
	if !source.ok() || r.cfg.Responses == ResponsesOmitted {
		return nil, accept
	}
	return r.responseSchema(source), accept
}

// accepted writes the header Accept: JSON before what else the document has,
// and anything at all last.
func accepted(kinds, others []string) string {
	if len(kinds)+len(others) == 0 {
		return "*/*"
	}
	quality := ""
	if len(kinds) > 0 {
		quality = ";q=0.5"
	}
	for _, kind := range others {
		kinds = append(kinds, kind+quality)
	}
	return strings.Join(kinds, ", ") + ", */*;q=0.1"
}

// success returns the documented response of an operation that succeeds.
func (r *reader) success(o *operation) (node, error) {
	all := o.node.child("responses")
	best := node{}
	for _, code := range []string{"200", "201", "202", "203", "206", "2XX", "2xx", "default"} {
		if n := all.child(code); n.ok() {
			best = n
			break
		}
	}
	if !best.ok() {
		return best, nil
	}
	return r.lib.deref(best)
}

func (r *reader) responseSchema(source node) json.RawMessage {
	raw, refs, err := r.responses.convert(source, levelValue)
	if err == nil {
		var defs json.RawMessage
		if defs, err = r.responses.definitions(refs, r.budget()); err == nil {
			return r.outSchema(raw, defs)
		}
	}
	r.problems = append(r.problems, err)
	return nil
}

func (r *reader) budget() int {
	if r.cfg.Responses == ResponsesChecked {
		return checkedBudget
	}
	return shownBudget
}

// outSchema puts definitions beside a schema. In the mode that only shows it,
// any value at all is the second alternative.
func (r *reader) outSchema(raw, defs json.RawMessage) json.RawMessage {
	if len(raw) > r.budget() || rawjson.KindOf(raw) != rawjson.KindObject || rawjson.Len(raw) == 0 {
		return nil
	}
	out := raw
	if r.cfg.Responses == ResponsesShown {
		out = slices.Concat([]byte(`{"anyOf":[`), raw, []byte(`,{"description":"Anything else: the API is not held to its document."}]}`))
	}
	if defs != nil {
		out, _ = rawjson.Set(out, "$defs", defs) // out is an object
	}
	if compact, err := rawjson.Compact(out); err == nil {
		return compact
	}
	return nil
}

// examples returns the document's example of the arguments if it is valid.
func examples(args, example json.RawMessage) []tools.ToolExample {
	if example == nil {
		return nil
	}
	compiled, err := schema.Compile(args, nil)
	if err != nil || compiled.Check(example) != nil {
		return nil
	}
	values := map[string]any{}
	dec := json.NewDecoder(bytes.NewReader(example))
	dec.UseNumber()
	if dec.Decode(&values) != nil {
		return nil
	}
	return []tools.ToolExample{{Args: values}}
}
