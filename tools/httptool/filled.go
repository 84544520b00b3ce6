package httptool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// A filledEndpoint runs one tool of a manifest. It is safe for concurrent use.
type filledEndpoint struct {
	caller    *caller
	label     string
	method    string
	url       *filler
	headers   []filledHeader
	media     string // the Content-Type that the manifest sets, or ""
	body      *filler
	sendsArgs bool // without a body template, the arguments are the body
	auth      credentials
}

type filledHeader struct {
	name  string
	value *filler
}

// invoke makes one attempt at a call.
func (e *filledEndpoint) invoke(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
	out, err := e.request(args)
	if err != nil {
		return tools.ToolResult{}, invalid(err)
	}
	return e.caller.call(ctx, out)
}

func (e *filledEndpoint) request(args json.RawMessage) (*outgoing, error) {
	values, err := templateArgs(args)
	if err != nil {
		return nil, err
	}
	out := &outgoing{label: e.label, method: e.method, header: http.Header{}, auth: e.auth}
	if out.url, err = e.target(values); err != nil {
		return nil, fmt.Errorf("url_template: %w", err)
	}
	out.header.Set("Accept", "application/json, */*;q=0.5")
	if err := e.content(out, args, values); err != nil {
		return nil, err
	}
	for _, h := range e.headers {
		value, err := h.value.fill(values)
		if err != nil {
			return nil, fmt.Errorf("header %s: %w", h.name, err)
		}
		if !httpguts.ValidHeaderFieldValue(value) {
			return nil, fmt.Errorf("header %s: an argument holds a line break or another control character", h.name)
		}
		if value != "" {
			out.header.Set(h.name, value)
		}
	}
	return out, nil
}

func (e *filledEndpoint) target(values map[string]any) (*url.URL, error) {
	text, err := e.url.fill(values)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil {
		return nil, errors.New("the arguments do not make a URL")
	}
	for segment := range strings.SplitSeq(u.EscapedPath(), "/") {
		if segment == "." || segment == ".." {
			return nil, fmt.Errorf("an argument in the path must not be %q", segment)
		}
	}
	return u, nil
}

// content sets the request body and its type.
func (e *filledEndpoint) content(out *outgoing, args json.RawMessage, values map[string]any) error {
	switch {
	case e.body != nil:
		text, err := e.body.fill(values)
		if err != nil {
			return fmt.Errorf("body_template: %w", err)
		}
		if bodyPlace(or(e.media, "application/json")) == placeJSON && !rawjson.Valid([]byte(text)) {
			return errors.New("body_template: these arguments make malformed JSON of it")
		}
		out.body = []byte(text)
	case e.sendsArgs && bodyPlace(or(e.media, "application/json")) == placeForm:
		form := bodyForm{arg: "arguments", encoding: encodingForm}
		body, err := form.urlEncoded(args)
		if err != nil {
			return err
		}
		out.body = body
	case e.sendsArgs:
		if out.body = args; len(args) == 0 {
			out.body = []byte("{}")
		}
	default:
		return nil
	}
	out.header.Set("Content-Type", or(e.media, "application/json"))
	return nil
}
