package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync/atomic"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// Entrance is what a way in knows about the calls that arrive through it. It
// is set on the context before the door, with WithEntrance.
type Entrance struct {
	// Peer reaches whoever waits for the answer. Nil drops progress and logs
	// and refuses questions.
	Peer Peer
	// CallID is the caller's own id for the call. Empty means that the door
	// makes one. Ids must be unique within a run.
	CallID string
	// IdempotencyKey, when not empty, is passed to tools that can use it and
	// lets the call be repeated after it was delivered.
	IdempotencyKey string
	// Meta is the caller's _meta object, or empty.
	Meta json.RawMessage
	// Capabilities is what the caller can be asked.
	Capabilities Capabilities
	// Client names who answers questions: calls of one Client that is not
	// empty are answered by the same person or program, so that a question
	// may be put on any of them. Empty means that this is only known of the
	// call itself.
	Client string
	// ClientGone is closed when Client will make no more calls. Nil says
	// nothing.
	ClientGone <-chan struct{}
	// LogLevel is the least level of log lines that the caller wants, a syslog
	// word. Empty leaves it to the tool.
	LogLevel string
	// Extra is an object with the members of an MCP request's params that this
	// module does not know, or empty. It passes on to a tool of an MCP server.
	Extra json.RawMessage
	// Tasks says that the caller takes a task of MCP in place of a result.
	Tasks bool
	// Guard, when not nil, is what the entrance itself demands of the call. It
	// stands around everything else, the catalog's middleware included.
	Guard Guard
	// Sink keeps content that is too large for the caller. Nil says that the
	// caller takes whole results. A call that a tool makes of its own does not
	// inherit it.
	Sink Sink
	// RefuseForged refuses a call with arguments that are hidden from the
	// caller, as one with invalid arguments. Otherwise they are removed and the
	// call goes on.
	RefuseForged bool
}

// Guard surrounds one call. It gets the tool that is going to run, which is the
// target where the call was redirected and must not be changed. It goes on by
// calling next, one call after the other and before it returns; with other
// arguments, those are checked below. What it refuses without going on is
// denied.
type Guard func(ctx context.Context, tool *Tool, args json.RawMessage, next Invoker) (ToolResult, error)

// Capabilities says what a caller can be asked through Call.Ask.
type Capabilities struct {
	Sampling, ElicitForm, ElicitURL, Roots bool
	// Declared is the caller's own ClientCapabilities object of MCP, or empty.
	// It refines what the flags say.
	Declared json.RawMessage
}

// Any reports whether the caller can be asked anything.
func (c Capabilities) Any() bool { return c.Sampling || c.ElicitForm || c.ElicitURL || c.Roots }

// Peer is the way back to whoever waits for a call's answer. Its methods are
// called by many goroutines at once.
type Peer interface {
	// Progress passes on how far the call is.
	Progress(ctx context.Context, p ProgressNote) error
	// Log passes on a line for the caller's log.
	Log(ctx context.Context, l LogNote) error
	// Ask puts a question to the caller and waits for the answer.
	Ask(ctx context.Context, q Question) (Answer, error)
}

// BatchPeer is a Peer that can put several questions to the caller at once.
type BatchPeer interface {
	Peer
	// AskAll returns one answer for each question, in their order.
	AskAll(ctx context.Context, list []Question) ([]Answer, error)
}

// NotifiedPeer is a Peer that passes on notifications of MCP to its client, also
// when the call is over.
type NotifiedPeer interface {
	Peer
	Notify(ctx context.Context, method string, params json.RawMessage) error
}

// ClientPeer is a Peer that hears what its client tells at any time, such as
// notifications/roots/list_changed.
type ClientPeer interface {
	Peer
	// OnClientNote has f called for each such notification until stop is
	// called. f must not block.
	OnClientNote(f func(method string, params json.RawMessage)) (stop func())
}

// ProgressNote says how far a call is.
type ProgressNote struct {
	// Progress grows with each note.
	Progress float64
	// Total is what Progress grows to, or zero when that is not known.
	Total float64
	// Message is for people.
	Message string
	// Raw holds the note's parameters as an MCP server sent them, so that
	// fields which this struct does not name pass on; the progress token in it
	// is not the caller's. Empty for notes that begin here.
	Raw json.RawMessage
}

// LogNote is one line for the caller's log.
type LogNote struct {
	// Level is a syslog word: debug, info, notice, warning, error, critical,
	// alert or emergency.
	Level string
	// Logger names what speaks.
	Logger string
	// Data is any JSON value.
	Data json.RawMessage
	// Raw holds the note's parameters as an MCP server sent them, so that
	// fields which this struct does not name pass on. Empty for notes that
	// begin here.
	Raw json.RawMessage
}

// Question is something that a tool asks its caller, in the form that MCP
// gives it.
type Question struct {
	// Method is "elicitation/create", "sampling/createMessage" or
	// "roots/list".
	Method string
	// Params are the parameters of that method.
	Params json.RawMessage
	// Key names the question among those of the call; a caller that is asked
	// by way of a result answers under it. Empty lets the peer choose.
	Key string
}

// Answer is the result of a Question's method.
type Answer struct{ Result json.RawMessage }

// AnswerError is the caller's answer to a question when that is an error. It
// stands in the chain of the error that Ask returns.
type AnswerError struct {
	Code    int64
	Message string
	Data    json.RawMessage
}

// Error returns the caller's message and code.
func (e *AnswerError) Error() string { return fmt.Sprintf("%s (code %d)", e.Message, e.Code) }

// Call is one call on its way through the door. A tool finds it with CallFrom.
// It is safe for concurrent use.
type Call struct {
	// ID identifies the call in events, records and results.
	ID string
	// Parent is the id of the call whose tool made this one, or empty.
	Parent string
	// RunID is the run that the call belongs to, or empty.
	RunID string
	// IdempotencyKey is the caller's, or empty.
	IdempotencyKey string
	// Meta is the caller's _meta object, or empty.
	Meta json.RawMessage
	// Capabilities is what the caller can be asked.
	Capabilities Capabilities
	// Client names who answers questions, and ClientGone is closed when it will
	// make no more calls; see Entrance.
	Client     string
	ClientGone <-chan struct{}
	// LogLevel is the least level of log lines that the caller wants, or empty.
	LogLevel string
	// Extra is what else the caller's MCP request says, and Tasks that it takes
	// a task in place of a result; see Entrance. A catalog with a Redactor
	// takes no tasks, whose results would pass it by.
	Extra json.RawMessage
	Tasks bool

	strict  bool        // hidden arguments are refused; beside the other flags, so that all take one word
	whole   atomic.Bool // see KeepWhole
	peer    Peer
	part    PartFunc // that the call came with, or nil
	sink    Sink
	kept    atomic.Pointer[keptAside] // what went there
	guard   Guard
	binding *binding
	args    json.RawMessage // as validated, before injection
	number  atomic.Int32
	running atomic.Pointer[attempt] // the attempt that runs
}

// Nested reports whether a tool made the call.
func (c *Call) Nested() bool { return c != nil && c.Parent != "" }

// Attempt returns the number of the attempt that runs, counted from 1, or 0
// before the first.
func (c *Call) Attempt() int {
	if c == nil {
		return 0
	}
	return int(c.number.Load())
}

// Digest returns the SHA-256, in hex, of the call's arguments: compacted, as
// validated, without hidden ones.
func (c *Call) Digest() string {
	if c == nil {
		return ""
	}
	return digestArgs(c.args)
}

func digestArgs(args json.RawMessage) string {
	compacted, err := rawjson.Compact(args)
	if err != nil {
		compacted = args
	}
	sum := sha256.Sum256(compacted)
	return hex.EncodeToString(sum[:])
}

// Peer returns the way back to whoever waits for the call's answer, or nil.
func (c *Call) Peer() Peer {
	if c == nil {
		return nil
	}
	return c.peer
}

// Progress tells the caller how far the call is. Without a caller that wants
// to know, it does nothing.
func (c *Call) Progress(ctx context.Context, p ProgressNote) error {
	if c == nil || c.peer == nil {
		return nil
	}
	return c.peer.Progress(ctx, p)
}

// Log sends a line to the caller's log. Without a caller that keeps one, it
// does nothing.
func (c *Call) Log(ctx context.Context, l LogNote) error {
	if c == nil || c.peer == nil {
		return nil
	}
	return c.peer.Log(ctx, l)
}

// Ask puts a question to the caller and waits for the answer. Meanwhile the
// time limit of the attempt stands still. It returns ErrAskUnsupported when
// nobody can be asked.
func (c *Call) Ask(ctx context.Context, q Question) (Answer, error) {
	if c == nil || c.peer == nil {
		return Answer{}, fmt.Errorf("%w: %s: no caller waits that could answer", ErrAskUnsupported, q.Method)
	}
	if a := c.running.Load(); a != nil {
		a.pause()
		defer a.resume()
	}
	return c.peer.Ask(ctx, q)
}

// Suspend stops the time limit of the attempt while a person is waited for, until
// the function that it returns is called.
func (c *Call) Suspend() (resume func()) {
	if c == nil {
		return func() {}
	}
	a := c.running.Load()
	if a == nil {
		return func() {}
	}
	a.pause()
	return a.resume
}

// Notify passes a notification of MCP on to the caller's client, for what belongs
// to the client rather than to the call. Without a client that takes any, it
// does nothing.
func (c *Call) Notify(ctx context.Context, method string, params json.RawMessage) error {
	if c == nil {
		return nil
	}
	if p, ok := c.peer.(NotifiedPeer); ok {
		return p.Notify(ctx, method, params)
	}
	return nil
}

// AskAll puts several questions to the caller, at once where it can be asked so,
// and returns their answers in order. It fails with the first of them that
// fails. The time limit of the attempt stands still meanwhile.
func (c *Call) AskAll(ctx context.Context, list []Question) ([]Answer, error) {
	if c != nil && len(list) > 1 {
		if batch, ok := c.peer.(BatchPeer); ok {
			if a := c.running.Load(); a != nil {
				a.pause()
				defer a.resume()
			}
			return batch.AskAll(ctx, list)
		}
	}
	answers := make([]Answer, len(list))
	for i, q := range list {
		var err error
		if answers[i], err = c.Ask(ctx, q); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// Progress tells the caller of the tool that runs on ctx how far it is; total
// is zero when it is not known.
func Progress(ctx context.Context, progress, total float64, message string) error {
	return CallFrom(ctx).Progress(ctx, ProgressNote{Progress: progress, Total: total, Message: message})
}

type (
	callKey     struct{}
	entranceKey struct{}
	catalogKey  struct{}
)

// WithEntrance returns a context whose next call arrives through e. A call
// that a tool makes of its own inherits the peer and capabilities, not the id,
// the idempotency key, the _meta, or what else the request says.
func WithEntrance(ctx context.Context, e Entrance) context.Context {
	return context.WithValue(ctx, entranceKey{}, &e)
}

// Call returns a call that no catalog runs, for what a Companion asks or hears
// on the way.
func (e Entrance) Call() *Call {
	return &Call{ID: e.CallID, IdempotencyKey: e.IdempotencyKey, Meta: e.Meta, Capabilities: e.Capabilities, Client: e.Client,
		ClientGone: e.ClientGone, LogLevel: e.LogLevel, Extra: e.Extra, Tasks: e.Tasks, peer: e.Peer}
}

// EntranceFrom returns the entrance that WithEntrance set on the context, for
// a Companion; the zero value when there is none, as for the tool of a call.
func EntranceFrom(ctx context.Context) Entrance {
	if e, ok := ctx.Value(entranceKey{}).(*Entrance); ok && e != nil {
		return *e
	}
	return Entrance{}
}

// CallFrom returns the call whose tool runs on ctx, or nil. The methods of a
// nil Call are safe.
func CallFrom(ctx context.Context) *Call {
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}

// WithCatalog returns a context that carries cat.
func WithCatalog(ctx context.Context, cat ToolCatalog) context.Context {
	return context.WithValue(ctx, catalogKey{}, cat)
}

// Catalog returns the catalog on the context, if there is one. A tool that a
// catalog runs finds that catalog.
func Catalog(ctx context.Context) (ToolCatalog, bool) {
	cat, ok := ctx.Value(catalogKey{}).(ToolCatalog)
	return cat, ok
}

// MustCatalog returns the catalog on the context. It panics with an error that
// wraps ErrToolNotFound when there is none.
func MustCatalog(ctx context.Context) ToolCatalog {
	cat, ok := Catalog(ctx)
	if !ok {
		panic(fmt.Errorf("%w: no catalog on the context", ErrToolNotFound))
	}
	return cat
}
