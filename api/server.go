package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/toolcrib/toolcrib/artifacts"
	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/tools"
)

// DefaultMaxBodyBytes bounds a request when Options does not say: 64 MiB.
const DefaultMaxBodyBytes = 64 << 20

// Options configure a Server.
type Options struct {
	// Authenticate returns the context of a request's caller, with its
	// identity and scopes. Its error refuses the request, an *Error as it says
	// and any other as unauthenticated, and is shown to the caller. Nil means that the request's own context
	// already says who calls.
	Authenticate func(*http.Request) (context.Context, error)
	// Sources returns the state of the sources that the caller may see. Nil
	// means that there are none to show.
	Sources func(context.Context) []Source
	// Unmatched returns the names of entries of the configuration that no tool
	// has, as far as the caller may see them. Nil means that there are none.
	Unmatched func(context.Context) []string
	// Toolsets returns the toolsets that the caller may know of. Nil means that
	// there are none.
	Toolsets func(context.Context) []Toolset
	// Workers returns the toolsets that workers serve, as far as the caller may
	// know of them. Nil means that there are none.
	Workers func(context.Context) []registry.ToolsetState
	// ForgetWorkers removes a toolset that no worker serves, for a caller who may.
	// Nil means that there are none.
	ForgetWorkers func(ctx context.Context, toolset string) error
	// DeadLetters returns messages that workers could not serve, to a caller who may
	// see them. Nil means that there are none.
	DeadLetters func(context.Context, registry.DeadLetterQuery) (registry.DeadLetterPage, error)
	// Composed knows the skills and flows. Nil means that there are none.
	Composed Composed
	// Approval returns what becomes of the calls of a tool before they run, as
	// Description.ApprovalPolicy has it, and why. Nil says nothing.
	Approval func(context.Context, *tools.Tool) (policy, reason string)
	// Search finds tools that the caller sees, the best first. It sets of each hit
	// the name and how well it matches; the rest of the row is filled in. Nil
	// means that there is no search.
	Search func(context.Context, SearchRequest) (*SearchResponse, error)
	// Artifacts keeps large content. Nil means that there is none to reach.
	Artifacts *artifacts.Store
	// Bounder makes the results of calls small that ask for it. If it is a
	// tools.Sink, it takes in what is too large to pass through memory. Nil
	// gives them whole.
	Bounder Bounder
	// MaxBodyBytes bounds a request, but for content that is to be kept. 0 means DefaultMaxBodyBytes.
	MaxBodyBytes int64
}

// Bounder makes a result small enough for a model. It is safe for concurrent use.
type Bounder interface {
	Bound(ctx context.Context, tool *tools.Tool, result tools.ToolResult) (tools.ToolResult, error)
}

// Server serves the protocol below /v1/, and its methods to Go callers whose
// identity is on the context. It is safe for concurrent use.
type Server struct {
	cat     tools.LiveCatalog
	opts    Options
	methods map[string]method
}

// method answers one path. It writes the answer itself, or returns an error to
// be written.
type method func(w http.ResponseWriter, r *http.Request, body []byte) error

// New returns the protocol over cat. Nil options are the defaults.
func New(cat tools.LiveCatalog, opts *Options) *Server {
	s := &Server{cat: cat}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.MaxBodyBytes == 0 {
		s.opts.MaxBodyBytes = DefaultMaxBodyBytes
	}
	s.methods = map[string]method{
		"/v1/tools/list":       answer(decodeList, s.List),
		"/v1/tools/get":        answer(decodeID, s.Get),
		"/v1/tools/describe":   answer(decodeID, s.Describe),
		"/v1/tools/search":     answer(decodeSearch, s.Search),
		"/v1/tools/call":       s.serveCall,
		"/v1/artifacts/list":   answer(decodeArtifacts, s.ListArtifacts),
		"/v1/artifacts/get":    answer(decodeRef, s.GetArtifact),
		"/v1/artifacts/fetch":  answer(decodeFetch, s.FetchArtifact),
		"/v1/artifacts/delete": answer(decodeRef, s.DeleteArtifact),
		"/v1/toolsets/list":    answer(decodeNothing, func(ctx context.Context, _ struct{}) (*ToolsetsResponse, error) { return s.Toolsets(ctx) }),
		"/v1/skills/list":      answer(decodeNothing, func(ctx context.Context, _ struct{}) (*SkillsResponse, error) { return s.Skills(ctx) }),
		"/v1/skills/plan":      answer(decodePlan, s.PlanSkill),
		"/v1/flows/list":       answer(decodeNothing, func(ctx context.Context, _ struct{}) (*FlowsResponse, error) { return s.Flows(ctx) }),
		"/v1/flows/graph":      answer(decodeName, s.FlowGraph),
		"/v1/flows/runs":       answer(decodeRuns, s.FlowRuns),
		"/v1/flows/run":        answer(decodeRun, s.FlowRun),
		"/v1/flows/cancel":     answer(decodeRun, s.CancelRun),
		"/v1/workers/list":     answer(decodeNothing, func(ctx context.Context, _ struct{}) (*WorkersResponse, error) { return s.Workers(ctx) }),
		"/v1/workers/forget":   answer(decodeName, s.ForgetWorkers),
		"/v1/workers/dead":     answer(decodeDeadLetters, s.DeadLetters),
		"/v1/sources/list":     answer(decodeNothing, func(ctx context.Context, _ struct{}) (*SourcesResponse, error) { return s.Sources(ctx) }),
	}
	return s
}

// answer makes a method of what decodes its request and what answers it.
func answer[Q, A any](decode func([]byte) (Q, error), run func(context.Context, Q) (A, error)) method {
	return func(w http.ResponseWriter, r *http.Request, body []byte) error {
		req, err := decode(body)
		if err != nil {
			return err
		}
		resp, err := run(r.Context(), req)
		if err != nil {
			return err
		}
		return writeJSON(w, resp)
	}
}

func decodeNothing(raw []byte) (struct{}, error) { return struct{}{}, decodeObject("", raw, nil) }

// ServeHTTP answers a request below /v1/.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := s.serve(w, r); err != nil {
		WriteError(w, err)
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) error {
	run, ok := s.methods[r.URL.Path]
	content := r.URL.Path == contentPath || strings.HasPrefix(r.URL.Path, contentPath+"/")
	if !ok && !content {
		return s.unknownMethod(r.URL.Path)
	}
	if ok && r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return newError(CodeMethodNotAllowed, fmt.Sprintf("%s is answered to POST, not to %s", r.URL.Path, shorten(r.Method)))
	}
	if s.opts.Authenticate != nil {
		ctx, err := s.opts.Authenticate(r)
		if e, ok := errors.AsType[*Error](err); ok {
			return e
		}
		if err != nil {
			return newError(CodeUnauthenticated, err.Error())
		}
		r = r.WithContext(ctx)
	}
	if content {
		return s.serveContent(w, r)
	}
	body, err := s.readBody(w, r)
	if err != nil {
		return err
	}
	return run(w, r, body)
}

func (s *Server) unknownMethod(path string) error {
	known := []string{contentPath}
	for p := range s.methods {
		known = append(known, p)
	}
	slices.Sort(known)
	return newError(CodeUnknownMethod, unknown(shorten(path)+": unknown method", path, known))
}

// readBody returns the request's JSON. A request without a body is one with an
// empty object.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.ContentLength == 0 {
		return []byte("{}"), nil
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return nil, newError(CodeMediaType, fmt.Sprintf("Content-Type: expected application/json, found %q", shorten(kind)))
	}
	if r.ContentLength > s.opts.MaxBodyBytes {
		return nil, s.tooLarge()
	}
	var buf bytes.Buffer
	if r.ContentLength > 0 { // which is not believed beyond a little
		buf.Grow(int(min(r.ContentLength, trustedLength)) + bytes.MinRead)
	}
	_, err = buf.ReadFrom(http.MaxBytesReader(w, r.Body, s.opts.MaxBodyBytes))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, s.tooLarge()
	}
	if err != nil {
		return nil, newError(CodeInvalidRequest, "the request's body ended early")
	}
	return buf.Bytes(), nil
}

// trustedLength is how much memory is set aside for a body that has not come
// yet.
const trustedLength = 32 << 10

func (s *Server) tooLarge() error {
	return newError(CodeTooLarge, fmt.Sprintf("the request is larger than %d bytes", s.opts.MaxBodyBytes))
}

func (s *Server) serveCall(w http.ResponseWriter, r *http.Request, body []byte) error {
	req, err := decodeCall(body)
	if err != nil {
		return err
	}
	if wantsEvents(r) {
		s.streamCall(w, r, req)
		return nil
	}
	returned := false
	defer func() {
		if !returned {
			answerEnded(w)
		}
	}()
	resp, err := s.Call(r.Context(), req)
	returned = true
	if err != nil {
		return err
	}
	writeBody(w, http.StatusOK, append(resp.AppendJSON(nil), '\n'))
	return nil
}

// answerEnded answers for a tool that ended the goroutine of the request, after
// which nothing of the answer would leave by itself.
func answerEnded(w http.ResponseWriter) {
	w.Header().Set("Connection", "close") // or the client would use it once more
	WriteError(w, errEnded)
	_ = http.NewResponseController(w).Flush()
}

// wantsEvents reports whether the caller named the media type of events.
func wantsEvents(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		if kind, _, err := mime.ParseMediaType(part); err == nil && kind == "text/event-stream" {
			return true
		}
	}
	return false
}

func writeJSON(w http.ResponseWriter, v any) error {
	body, err := encode(v)
	if err != nil {
		return newError(CodeInternal, "the answer cannot be encoded")
	}
	writeBody(w, http.StatusOK, body)
	return nil
}

// encode is json.Marshal without its escapes for HTML, and a line feed.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return buf.Bytes(), err
}

// WriteError answers a request with a failure as the protocol states it.
func WriteError(w http.ResponseWriter, err error) {
	e := ErrorFrom(err)
	if e.RetryAfterMS > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt((e.RetryAfterMS+999)/1000, 10))
	}
	body, _ := encode(errorBody{e}) // strings and numbers always encode
	writeBody(w, e.Code.Status(), body)
}

func writeBody(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = io.Copy(w, bytes.NewReader(body))
}
