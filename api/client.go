package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"github.com/toolcrib/toolcrib/registry"
)

// ClientOptions configure a Client.
type ClientOptions struct {
	// HTTPClient sends the requests. Nil means a client of its own without a
	// time limit: the context of a call limits it.
	HTTPClient *http.Client
	// Session, when not empty, names the caller's session: what is found and
	// kept in it is there in each call that names it.
	Session string
	// Toolset, when not empty, names the toolset that the caller works in: it sees,
	// finds and can call what is in it and nothing else.
	Toolset string
}

// SessionHeader is the header that names a caller's session.
const SessionHeader = "Toolcrib-Session"

// ToolsetHeader is the header that names the toolset which a caller works in.
const ToolsetHeader = "Toolcrib-Toolset"

// name says whose session a request is of, and in which toolset.
func (c *Client) name(req *http.Request) {
	if c.session != "" {
		req.Header.Set(SessionHeader, c.session)
	}
	if c.toolset != "" {
		req.Header.Set(ToolsetHeader, c.toolset)
	}
}

// Client speaks the protocol with a server. It is safe for concurrent use.
type Client struct {
	base    string
	shown   string // without what may be secret in it
	session string
	toolset string
	http    *http.Client
}

// NewClient returns a client of the server at a URL such as
// "http://127.0.0.1:7711". It sends nothing yet.
func NewClient(base string, opts *ClientOptions) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is not the URL of a server: expected something like http://127.0.0.1:7711", truncated(shownURL(u, base)))
	}
	c := &Client{base: strings.TrimSuffix(base, "/"), shown: shownURL(u, base), http: &http.Client{}}
	if opts != nil {
		c.session, c.toolset = opts.Session, opts.Toolset
		if opts.HTTPClient != nil {
			c.http = opts.HTTPClient
		}
	}
	return c, nil
}

// shownURL returns a URL as it may be shown: without password and query.
func shownURL(u *url.URL, raw string) string {
	if u == nil || u.Scheme == "" {
		raw, _, _ = strings.Cut(raw, "?")
		if at := strings.LastIndexByte(raw, '@'); at >= 0 {
			raw = raw[at+1:]
		}
		return raw
	}
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: strings.TrimSuffix(u.Path, "/")}
	return shown.String()
}

func truncated(s string) string { return s[:min(len(s), 200)] }

// List returns a page of the tools that the caller sees.
func (c *Client) List(ctx context.Context, req ListRequest) (*ListResponse, error) {
	return ask[ListResponse](ctx, c, "/v1/tools/list", req)
}

// Get returns the tool of that name as List shows it.
func (c *Client) Get(ctx context.Context, id string) (*Summary, error) {
	return ask[Summary](ctx, c, "/v1/tools/get", idRequest{id})
}

// Describe returns the tool of that name with its schemas, examples and policy.
func (c *Client) Describe(ctx context.Context, id string) (*Description, error) {
	return ask[Description](ctx, c, "/v1/tools/describe", idRequest{id})
}

// Search finds tools that the caller sees.
func (c *Client) Search(ctx context.Context, req SearchRequest) (*SearchResponse, error) {
	return ask[SearchResponse](ctx, c, "/v1/tools/search", req)
}

// Sources returns the state of the sources that the caller may see.
func (c *Client) Sources(ctx context.Context) (*SourcesResponse, error) {
	return ask[SourcesResponse](ctx, c, "/v1/sources/list", struct{}{})
}

// Toolsets returns the toolsets that the caller may know of.
func (c *Client) Toolsets(ctx context.Context) (*ToolsetsResponse, error) {
	return ask[ToolsetsResponse](ctx, c, "/v1/toolsets/list", struct{}{})
}

// Workers returns the toolsets that workers serve, as far as the caller may know of
// them.
func (c *Client) Workers(ctx context.Context) (*WorkersResponse, error) {
	return ask[WorkersResponse](ctx, c, "/v1/workers/list", struct{}{})
}

// ForgetWorkers removes a toolset that no worker serves any more.
func (c *Client) ForgetWorkers(ctx context.Context, toolset string) (*ForgottenResponse, error) {
	return ask[ForgottenResponse](ctx, c, "/v1/workers/forget", map[string]string{"name": toolset})
}

// DeadLetters returns messages that workers could not serve.
func (c *Client) DeadLetters(ctx context.Context, req DeadLettersRequest) (*registry.DeadLetterPage, error) {
	return ask[registry.DeadLetterPage](ctx, c, "/v1/workers/dead", req)
}

// Call runs a tool.
func (c *Client) Call(ctx context.Context, req CallRequest) (*CallResponse, error) {
	accept := "application/json"
	if req.Notes != nil {
		accept = "text/event-stream, application/json"
	}
	resp, err := c.post(ctx, "/v1/tools/call", req.appendRequest(nil), accept)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return readEvents(resp.Body, req.Notes)
	}
	return decodeAnswer[CallResponse](resp)
}

func ask[A any](ctx context.Context, c *Client, path string, req any) (*A, error) {
	body, err := encode(req)
	if err != nil {
		return nil, err
	}
	resp, err := c.post(ctx, path, body, "application/json")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return decodeAnswer[A](resp)
}

// largeBody is from where on a request waits for the server's consent before
// it sends its body, so that a refusal for size is heard.
const largeBody = 1 << 20

func (c *Client) post(ctx context.Context, path string, body []byte, accept string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", accept)
	c.name(req)
	if len(body) > largeBody {
		req.Header.Set("Expect", "100-continue")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(err)
	}
	return resp, nil
}

// OutcomeUnknown ends the message of a call that was sent and not answered.
const OutcomeUnknown = " (outcome unknown: the call may have had its effect)"

// unreachable says what kept a request from being answered.
func (c *Client) unreachable(err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return newError(CodeCanceled, "the call was given up")
	case errors.Is(err, context.DeadlineExceeded):
		e := newError(CodeTimeout, "no answer in time from "+c.shown+OutcomeUnknown)
		e.OutcomeUnknown = true
		return e
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nothing listens at %s: connection refused", c.shown)
	}
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err
	}
	return fmt.Errorf("cannot reach %s: %w", c.shown, err)
}

func decodeAnswer[A any](resp *http.Response) (*A, error) {
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, brokenOff(err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, decodeError(resp.Status, body)
	}
	answer := new(A)
	if err := json.Unmarshal(body, answer); err != nil {
		return nil, fmt.Errorf("the server's answer is not that of a Toolcrib server: %w", err)
	}
	return answer, nil
}

// decodeError returns the protocol's error, or says that what answered does
// not speak the protocol.
func decodeError(status string, body []byte) error {
	var e errorBody
	if json.Unmarshal(body, &e) == nil && e.Error != nil && e.Error.Code != "" {
		return e.Error
	}
	return fmt.Errorf("the server answered %q, which is not an answer of a Toolcrib server", status)
}

// brokenOff is the error of an answer that ended before it was complete: the
// call was sent, so it may have had its effect.
func brokenOff(err error) error {
	code := CodeToolFailed
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		code = CodeTimeout
	case errors.Is(err, context.Canceled):
		code = CodeCanceled
	}
	e := newError(code, "the connection ended before the answer was complete"+OutcomeUnknown)
	e.OutcomeUnknown = true
	return e
}

// readEvents passes notes on until the result or the error comes.
func readEvents(body io.Reader, notes func(Note)) (*CallResponse, error) {
	r := bufio.NewReader(body)
	for {
		kind, data, err := readEvent(r)
		if err != nil {
			return nil, brokenOff(err)
		}
		switch kind {
		case NoteProgress, NoteLog:
			note := Note{Kind: kind}
			if json.Unmarshal(data, &note) == nil {
				notes(note)
			}
		case eventError:
			return nil, decodeError("an error event", data)
		case eventResult:
			answer := new(CallResponse)
			if err := json.Unmarshal(data, answer); err != nil {
				return nil, fmt.Errorf("the server's answer is not that of a Toolcrib server: %w", err)
			}
			return answer, nil
		}
	}
}

// readEvent reads up to the empty line that ends an event.
func readEvent(r *bufio.Reader) (kind string, data []byte, err error) {
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return "", nil, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			return kind, data, nil
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "event":
			kind = string(value)
		case "data":
			if data != nil {
				data = append(data, '\n')
			}
			data = append(data, value...)
		}
	}
}
