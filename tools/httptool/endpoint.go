package httptool

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// An endpoint runs one operation of an OpenAPI document. It holds nothing of
// the document. It is safe for concurrent use.
type endpoint struct {
	caller     *caller
	label      string
	method     string
	base       string   // scheme, host and path, without a slash at the end
	path       []string // literal text and parameter names in turn
	params     []*parameter
	body       *bodyForm
	accept     string
	headers    map[string]string // the operator's
	defaults   map[string]string // headers that arguments may change
	hidden     []string
	auth       credentials
	structured bool // every result must have a structured form
	rest       bool // arguments that nothing else takes go into the query
}

// invoke makes one attempt at a call.
func (e *endpoint) invoke(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
	out, err := e.request(args)
	if err != nil {
		return tools.ToolResult{}, invalid(err)
	}
	res, err := e.caller.call(ctx, out)
	if err == nil && e.structured && res.Structured == nil && len(res.Artifacts) == 0 {
		res.Structured = describe(res)
	}
	return res, err
}

// describe is the structured form of a result that is not JSON: its text, or
// what kinds of content it has.
func describe(res tools.ToolResult) json.RawMessage {
	if text, ok := res.Value.(string); ok {
		return rawjson.Quote(text)
	}
	kinds := []string{}
	for _, c := range res.Content {
		kinds = append(kinds, c.Type)
	}
	raw, _ := json.Marshal(map[string]any{"content": kinds}) // strings always encode
	return raw
}

func (e *endpoint) request(args json.RawMessage) (*outgoing, error) {
	values := map[string]json.RawMessage{}
	for it := rawjson.Object(args); it.Next(); {
		values[it.Key()] = it.Value()
	}
	out := &outgoing{label: e.label, method: e.method, header: http.Header{}, auth: e.auth, hidden: slices.Clone(e.hidden)}
	out.header.Set("Accept", e.accept)
	for name, value := range e.defaults {
		out.header.Set(name, value)
	}
	target, err := e.target(values)
	if err != nil {
		return nil, err
	}
	if out.url, err = url.Parse(target); err != nil {
		return nil, fmt.Errorf("the arguments do not make a URL")
	}
	if err := e.setHeaders(out.header, values); err != nil {
		return nil, err
	}
	if e.body != nil {
		var media string
		if out.body, media, err = e.body.encode(values); out.body != nil {
			out.header.Set("Content-Type", media)
		}
	}
	for name, value := range e.headers {
		out.header.Set(name, value)
	}
	return out, err
}

// target writes the URL. A variable that would make a path segment "." or ".."
// is refused: servers take such a segment for a step up, escaped or not.
func (e *endpoint) target(values map[string]json.RawMessage) (string, error) {
	path, err := e.expand(values)
	if err != nil {
		return "", err
	}
	path, query, _ := strings.Cut(path, "?")
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return "", fmt.Errorf("a path parameter must not be %q", segment)
		}
	}
	for _, p := range e.params {
		part := ""
		switch p.in {
		case "query":
			part = p.query(values[p.arg])
		case "querystring":
			if part, err = p.querystring(values[p.arg]); err != nil {
				return "", err
			}
		}
		if part != "" {
			query += "&" + part
		}
	}
	if e.rest {
		query += e.remaining(values)
	}
	if query = strings.TrimPrefix(query, "&"); query != "" {
		return e.base + path + "?" + query, nil
	}
	return e.base + path, nil
}

// remaining writes the arguments that neither a parameter nor the body takes,
// sorted, each with "&" before it.
func (e *endpoint) remaining(values map[string]json.RawMessage) string {
	query := ""
	for _, name := range slices.Sorted(maps.Keys(values)) {
		taken := slices.ContainsFunc(e.params, func(p *parameter) bool { return p.arg == name })
		if taken || e.body != nil && e.body.arg == name || e.auth.hide("query", name) {
			continue
		}
		p := parameter{name: name, in: "query", style: "form", explode: true, json: rawjson.KindOf(values[name]) == rawjson.KindObject}
		if part := p.query(values[name]); part != "" {
			query += "&" + part
		}
	}
	return query
}

func (e *endpoint) expand(values map[string]json.RawMessage) (string, error) {
	var b strings.Builder
	for i, part := range e.path {
		if i%2 == 0 {
			b.WriteString(part)
			continue
		}
		at := slices.IndexFunc(e.params, func(p *parameter) bool { return p.in == "path" && p.name == part })
		p := e.params[at]
		text, err := p.path(values[p.arg])
		if err != nil {
			return "", err
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

func (e *endpoint) setHeaders(h http.Header, values map[string]json.RawMessage) error {
	var cookies []string
	for _, p := range e.params {
		raw := values[p.arg]
		switch p.in {
		case "header":
			text, ok, err := p.header(raw)
			if err != nil {
				return err
			}
			if ok {
				h.Set(p.name, text)
			}
		case "cookie":
			text, err := p.cookie(raw)
			if err != nil {
				return err
			}
			if text != "" {
				cookies = append(cookies, text)
			}
		}
	}
	if len(cookies) > 0 {
		h.Set("Cookie", strings.Join(cookies, "; "))
	}
	return nil
}

// splitPath splits a path template into literal text and variable names, in
// turn, beginning and ending with text. A fragment, which some documents use
// to tell operations apart, is not sent.
func splitPath(path string) []string {
	path, _, _ = strings.Cut(path, "#")
	var parts []string
	end := 0
	for _, m := range pathVariable().FindAllStringSubmatchIndex(path, -1) {
		parts = append(parts, literalPath(path[end:m[0]]), path[m[2]:m[3]])
		end = m[1]
	}
	return append(parts, literalPath(path[end:]))
}

// literalPath escapes what cannot stand in a URL.
func literalPath(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("\"<>\\^`{}|", c) >= 0 {
			b.WriteString(percent(string([]byte{c}), false))
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
