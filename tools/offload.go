package tools

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// Sink keeps content that is too large to travel in a result. An entrance whose
// results must stay small provides one; it is safe for concurrent use.
type Sink interface {
	// Offload reads r to its end and keeps what it read for the caller on ctx.
	// When it fails, nothing is kept. It does not hold the content in memory.
	Offload(ctx context.Context, about Offload, r io.Reader) (ArtifactRef, error)
}

// A Retractor is a Sink that can take back what it keeps for the caller on ctx,
// before anybody was told of it.
type Retractor interface {
	Retract(ctx context.Context, ref string) error
}

// ArtifactScheme begins the URI of an artifact; its ref follows.
const ArtifactScheme = "artifact://"

// Link returns a block that stands for an artifact in the place of the content
// that it keeps.
func (a ArtifactRef) Link() Content {
	raw := rawjson.AppendQuoted([]byte(`{"type":"resource_link","uri":`), ArtifactScheme+a.Ref)
	raw = rawjson.AppendQuoted(append(raw, `,"name":`...), a.Ref)
	if a.MIME != "" {
		raw = rawjson.AppendQuoted(append(raw, `,"mimeType":`...), a.MIME)
	}
	raw = strconv.AppendInt(append(raw, `,"size":`...), a.SizeBytes, 10)
	return Content{Type: "resource_link", JSON: append(raw, '}')}
}

// Offload says what is to be kept.
type Offload struct {
	// MIME is the media type, or empty when it is not known.
	MIME string
	// Name is a file name, or empty.
	Name string
	// Tool and CallID say whose result it is part of; Call.Offload sets them.
	Tool, CallID string
}

// ErrNoSink: the call has nowhere to keep large content; its caller takes whole
// results.
var ErrNoSink = errors.New("tools: the caller keeps no artifacts")

// Offloads reports whether the call's caller wants large content kept aside. A
// driver then streams what is larger than about OffloadBytes to Offload, and
// returns the reference in ToolResult.Artifacts instead of the content. It is
// false where results are redacted, by a policy that the tool names or by the
// catalog's Redactor, and after KeepWhole, because what is kept aside passes by
// whoever changes results.
func (c *Call) Offloads() bool {
	return c.Sink() != nil && (c.binding == nil || c.binding.tool.Safety.Redaction == "")
}

// KeepWhole has nothing of the call's result kept aside from here on. Middleware
// that must see the whole of a result, such as one that redacts it, says so before
// it goes on.
func (c *Call) KeepWhole() {
	if c != nil && !c.whole.Load() {
		c.whole.Store(true)
	}
}

// Sink returns what keeps the call's large content, or nil. A tool that passes
// its own call on to another tool gives it to that one's Entrance.
func (c *Call) Sink() Sink {
	if c == nil || c.whole.Load() {
		return nil
	}
	return c.sink
}

// Offload keeps what r gives for the caller, without holding it in memory. It
// returns ErrNoSink when the caller wants whole results.
func (c *Call) Offload(ctx context.Context, about Offload, r io.Reader) (ArtifactRef, error) {
	if !c.Offloads() {
		return ArtifactRef{}, &Error{Code: ErrNoSink, Class: ErrClassPermanent}
	}
	about.CallID = c.ID
	if c.binding != nil {
		about.Tool = c.binding.tool.Name
	}
	ref, err := c.sink.Offload(ctx, about, r)
	if err != nil {
		return ArtifactRef{}, err
	}
	if !c.asideOf().add(ref) {
		return ArtifactRef{}, errors.Join(errForsaken, c.takeBack(ctx, ref))
	}
	return ref, nil
}

// errForsaken is for a driver that goes on when its call has failed.
var errForsaken = &Error{Class: ErrClassPermanent, Delivery: Answered, Message: "the call has ended"}

// keptAside is what a call has kept aside, and has to take back if it fails.
type keptAside struct {
	mu    sync.Mutex
	refs  []ArtifactRef
	ended bool // the call has failed
}

// asideOf returns what the call has kept aside.
func (c *Call) asideOf() *keptAside {
	if k := c.kept.Load(); k != nil {
		return k
	}
	c.kept.CompareAndSwap(nil, new(keptAside))
	return c.kept.Load()
}

// add reports whether the call may still keep something.
func (k *keptAside) add(ref ArtifactRef) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.ended {
		k.refs = append(k.refs, ref)
	}
	return !k.ended
}

func (k *keptAside) remove(refs []ArtifactRef) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refs = slices.DeleteFunc(k.refs, func(ref ArtifactRef) bool { return slices.Contains(refs, ref) })
}

// end returns what is to be taken back, and has nothing more kept.
func (k *keptAside) end() []ArtifactRef {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = true
	refs := k.refs
	k.refs = nil
	return refs
}

// forsake takes back what a call that failed has kept aside, also what a driver
// that was given up is about to keep.
func (c *Call) forsake(ctx context.Context) {
	if c == nil || c.sink == nil {
		return
	}
	if refs := c.asideOf().end(); len(refs) > 0 {
		_ = c.takeBack(ctx, refs...) // what is left expires
	}
}

// Retract takes back what Offload kept, for a driver that makes no result of it.
// What the caller's sink cannot take back goes when it expires.
func (c *Call) Retract(ctx context.Context, refs ...ArtifactRef) error {
	if c == nil || c.sink == nil || len(refs) == 0 {
		return nil
	}
	c.asideOf().remove(refs)
	return c.takeBack(ctx, refs...)
}

func (c *Call) takeBack(ctx context.Context, refs ...ArtifactRef) error {
	r, ok := c.sink.(Retractor)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), retractTime)
	defer cancel()
	var faults []error
	for _, ref := range refs {
		faults = append(faults, r.Retract(ctx, ref.Ref))
	}
	return errors.Join(faults...)
}

// retractTime bounds how long the end of a call waits until nothing is left of
// it.
const retractTime = 10 * time.Second

// OffloadBytes is the size above which drivers keep content aside, unless they
// are told otherwise. It is far above the size at which an entrance bounds what
// a model sees, since content in memory is validated, redacted and shown better.
const OffloadBytes = 256 << 10
