package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/view"
)

// CallRequest is one call of a tool.
type CallRequest struct {
	Name string
	// Arguments is the JSON of the arguments; empty means an object without
	// members. The bytes reach the tool as they are.
	Arguments json.RawMessage
	// IdempotencyKey, when not empty, lets the call be repeated after it was
	// delivered.
	IdempotencyKey string
	// Meta is a JSON object for the tool, or empty.
	Meta json.RawMessage
	// Resume, when not empty, is the id of a run of the flow of that name to go on
	// with; there are no arguments then.
	Resume string
	// Bounded asks for a result that is small enough for a model: what is large
	// is kept as artifacts, and shown in part.
	Bounded bool
	// Notes, when not nil, is told what the tool says while it runs, one note
	// at a time. It must return soon.
	Notes func(Note)
}

// Note is something that a tool says before it answers.
type Note struct {
	// Kind is NoteProgress or NoteLog.
	Kind string `json:"-"`
	// Progress grows up to Total, which is 0 when it is not known.
	Progress float64 `json:"progress,omitempty"`
	Total    float64 `json:"total,omitempty"`
	Message  string  `json:"message,omitempty"`
	// Level is a syslog word such as "info", and Data any JSON value.
	Level  string          `json:"level,omitempty"`
	Logger string          `json:"logger,omitempty"`
	Data   json.RawMessage `json:"data,omitempty"`
}

// The values of Note.Kind.
const (
	NoteProgress = "progress"
	NoteLog      = "log"
)

// CallResponse is what a call gave back.
type CallResponse struct {
	CallID string `json:"call_id"`
	// IsError says that the tool was reached and answers that it failed; the
	// content says why.
	IsError bool `json:"is_error"`
	// Structured is the structured result, byte for byte, or empty.
	Structured json.RawMessage `json:"structured"`
	// Content holds the blocks of the result in the form that MCP gives them,
	// or is empty.
	Content []tools.Content `json:"content"`
	// Artifacts names large parts that are kept elsewhere.
	Artifacts []tools.ArtifactRef `json:"artifacts"`
	// Meta is what the tool said about the result, for programs.
	Meta json.RawMessage `json:"meta"`
	// Provider is what the tool's transport said about the answer.
	Provider  json.RawMessage `json:"provider"`
	Attempts  int             `json:"attempts"`
	ElapsedMS float64         `json:"elapsed_ms"`
}

// Text returns the text of a result that has text blocks and nothing else.
func (r *CallResponse) Text() (string, bool) {
	if r.Structured != nil || len(r.Content) == 0 {
		return "", false
	}
	parts := make([]string, len(r.Content))
	for i, c := range r.Content {
		text, ok := c.Text()
		if !ok {
			return "", false
		}
		parts[i] = text
	}
	return strings.Join(parts, "\n"), true
}

// AppendJSON appends the response as the protocol sends it. The bytes of the
// result are not changed, which encoding/json would do.
func (r *CallResponse) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"call_id":`...)
	dst = rawjson.AppendQuoted(dst, r.CallID)
	dst = append(dst, `,"is_error":`...)
	dst = strconv.AppendBool(dst, r.IsError)
	dst = appendMember(dst, "structured", r.Structured)
	if len(r.Content) > 0 {
		dst = append(dst, `,"content":`...)
		dst = AppendContent(dst, r.Content)
	}
	if len(r.Artifacts) > 0 {
		refs, _ := json.Marshal(r.Artifacts) // strings and integers always encode
		dst = appendMember(dst, "artifacts", refs)
	}
	dst = appendMember(dst, "meta", r.Meta)
	dst = appendMember(dst, "provider", r.Provider)
	dst = append(dst, `,"attempts":`...)
	dst = strconv.AppendInt(dst, int64(r.Attempts), 10)
	dst = append(dst, `,"elapsed_ms":`...)
	dst = strconv.AppendFloat(dst, r.ElapsedMS, 'f', 3, 64)
	return append(dst, '}')
}

// AppendContent appends the blocks as a JSON array, each as it is.
func AppendContent(dst []byte, blocks []tools.Content) []byte {
	dst = append(dst, '[')
	for i, c := range blocks {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, c.JSON...)
	}
	return append(dst, ']')
}

func appendMember(dst []byte, key string, value json.RawMessage) []byte {
	if len(value) == 0 {
		return dst
	}
	dst = append(dst, ',', '"')
	dst = append(dst, key...)
	dst = append(dst, '"', ':')
	return append(dst, value...)
}

// Call runs a tool for the caller on ctx.
func (s *Server) Call(ctx context.Context, req CallRequest) (resp *CallResponse, err error) {
	defer func() {
		if recover() != nil { // values that a tool gave write themselves
			resp, err = nil, errUnwritten
		}
	}()
	return s.call(ctx, req)
}

func (s *Server) call(ctx context.Context, req CallRequest) (*CallResponse, error) {
	if req.Name == "" {
		return nil, newError(CodeInvalidRequest, "name: expected the name of a tool")
	}
	ctx, err := s.resuming(ctx, &req)
	if err != nil {
		return nil, err
	}
	entrance := tools.Entrance{IdempotencyKey: req.IdempotencyKey, Meta: req.Meta}
	if req.Notes != nil {
		entrance.Peer = &notePeer{notes: req.Notes}
	}
	if req.Bounded {
		entrance.Sink, _ = s.opts.Bounder.(tools.Sink)
	}
	result, err := tools.Invoke(tools.WithEntrance(ctx, entrance), s.cat, req.Name, req.Arguments)
	if err != nil {
		return nil, s.callError(ctx, err, req.Name)
	}
	if req.Bounded && s.opts.Bounder != nil {
		tool, _ := view.From(ctx, s.cat).Tool(cmp.Or(result.Tool, req.Name))
		if result, err = s.opts.Bounder.Bound(ctx, &tool, result); err != nil {
			return nil, ErrorFrom(err)
		}
	}
	return responseOf(&result)
}

// errUnwritten says that a tool ran, and that what it gave panics when it is
// bounded or written.
var errUnwritten = newError(CodeInternal, "the tool's result cannot be shown: writing it panicked")

func (s *Server) callError(ctx context.Context, err error, name string) *Error {
	e := *ErrorFrom(err)
	if te, ok := errors.AsType[*tools.Error](err); ok && e.Code == CodeToolNotFound && te.Attempts == 0 {
		return s.suggest(ctx, &e, cmp.Or(te.Tool, name)) // of a call that was redirected, its target
	}
	return &e
}

func responseOf(result *tools.ToolResult) (*CallResponse, error) {
	structured := result.Structured
	if structured == nil && len(result.Content) == 0 {
		encoded, err := result.JSON()
		if err != nil {
			return nil, newError(CodeInvalidOutput, "the result cannot be shown as JSON: "+err.Error())
		}
		structured = encoded
	}
	meta, err := metaOf(result)
	if err != nil {
		return nil, newError(CodeInvalidOutput, "the result's meta cannot be shown as JSON: "+err.Error())
	}
	provider, err := encodeMap(result.Provider)
	if err != nil {
		return nil, newError(CodeInvalidOutput, "the result's provider data cannot be shown as JSON: "+err.Error())
	}
	return &CallResponse{
		CallID: result.CallID, IsError: result.IsError, Structured: structured, Content: result.Content,
		Artifacts: result.Artifacts, Meta: meta, Provider: provider, Attempts: result.Attempts,
		ElapsedMS: float64(result.Elapsed.Microseconds()) / 1000,
	}, nil
}

// metaOf prefers the bytes that an MCP server sent over what was read from
// them.
func metaOf(result *tools.ToolResult) (json.RawMessage, error) {
	if meta, ok := rawjson.Get(result.Wire, "_meta"); ok {
		return meta, nil
	}
	return encodeMap(result.Meta)
}

func encodeMap(m map[string]any) (json.RawMessage, error) {
	if len(m) == 0 {
		return nil, nil
	}
	return json.Marshal(m)
}

func decodeCall(raw []byte) (CallRequest, error) {
	var req CallRequest
	err := decodeObject("", raw, []field{
		{"name", takeString(&req.Name)},
		{"arguments", takeRaw((*[]byte)(&req.Arguments))},
		{"idempotency_key", takeString(&req.IdempotencyKey)},
		{"meta", takeObject((*[]byte)(&req.Meta))},
		{"bounded", takeBool(&req.Bounded)},
		{"resume", takeString(&req.Resume)},
	})
	return req, err
}

// appendRequest appends the request as the protocol sends it, with the bytes of
// the arguments as they are.
func (r *CallRequest) appendRequest(dst []byte) []byte {
	dst = append(dst, `{"name":`...)
	dst = rawjson.AppendQuoted(dst, r.Name)
	dst = appendMember(dst, "arguments", r.Arguments)
	if r.IdempotencyKey != "" {
		dst = appendMember(dst, "idempotency_key", rawjson.Quote(r.IdempotencyKey))
	}
	dst = appendMember(dst, "meta", r.Meta)
	if r.Resume != "" {
		dst = appendMember(dst, "resume", rawjson.Quote(r.Resume))
	}
	if r.Bounded {
		dst = appendMember(dst, "bounded", []byte("true"))
	}
	return append(dst, '}')
}

func noteOfProgress(p tools.ProgressNote) Note {
	return Note{Kind: NoteProgress, Progress: p.Progress, Total: p.Total, Message: p.Message}
}

func noteOfLog(l tools.LogNote) Note {
	return Note{Kind: NoteLog, Level: l.Level, Logger: l.Logger, Data: l.Data}
}

func errCannotAsk(q tools.Question) error {
	return fmt.Errorf("%w: %s: the JSON protocol cannot pass questions on", tools.ErrAskUnsupported, q.Method)
}
