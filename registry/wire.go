package registry

import (
	"encoding/json"
	"reflect"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// Every call passes the messages of this file several times, which reflection
// takes several times as long for as all else that is done with them. What is out
// of the ordinary is left to it, errors too.

// writer appends the members of JSON objects. Members that are zero are left out.
type writer struct {
	b   []byte
	odd bool // something is left to reflection
}

// room is what a message takes beside its raw parts, as a rule.
const room = 1024

// key begins a member.
func (w *writer) key(name string) {
	if n := len(w.b); n > 0 && w.b[n-1] != '{' {
		w.b = append(w.b, ',')
	}
	w.b = append(w.b, '"')
	w.b = append(w.b, name...)
	w.b = append(w.b, '"', ':')
}

func (w *writer) open(name string) {
	w.key(name)
	w.b = append(w.b, '{')
}

func (w *writer) close() { w.b = append(w.b, '}') }

// text writes a member that may be left out, and always one that may not.
func (w *writer) text(name, value string) {
	if value != "" {
		w.always(name, value)
	}
}

func (w *writer) always(name, value string) {
	w.key(name)
	w.odd = w.odd || !utf8.ValidString(value)
	w.b = rawjson.AppendQuoted(w.b, value)
}

func (w *writer) number(name string, value int) {
	if value != 0 {
		w.key(name)
		w.b = strconv.AppendInt(w.b, int64(value), 10)
	}
}

func (w *writer) flag(name string, value bool) {
	if value {
		w.key(name)
		w.b = append(w.b, "true"...)
	}
}

// instant writes a time that may be left out.
func (w *writer) instant(name string, value time.Time) {
	if !value.IsZero() {
		w.moment(name, value)
	}
}

func (w *writer) moment(name string, value time.Time) {
	w.key(name)
	w.odd = w.odd || value.Year() < 1 || value.Year() > 9999
	w.b = append(w.b, '"')
	w.b = value.AppendFormat(w.b, time.RFC3339Nano)
	w.b = append(w.b, '"')
}

func (w *writer) raw(name string, value json.RawMessage) {
	if value == nil {
		return
	}
	w.key(name)
	w.odd = w.odd || rawjson.Check(value, rawjson.Options{}) != nil
	w.b = append(w.b, value...)
}

// has reports whether a struct has as many fields as are written here. One that got
// more is left to reflection as a whole.
func has[T any](fields int) bool { return reflect.TypeFor[T]().NumField() == fields }

// quickEncode encodes what most messages are, and reports false for others.
func quickEncode(message any) ([]byte, bool) {
	w := writer{odd: !has[ToolCallMessage](15) || !has[ToolCallMeta](10) || !has[Route](6) || !has[Asks](6) || !has[ToolResultMessage](11) ||
		!has[Receipt](4) || !has[record](15) || !has[Claim](7)}
	switch m := message.(type) {
	case *ToolCallMessage:
		w.b = make([]byte, 0, room+len(m.Payload))
		w.call(m)
	case ToolResultMessage:
		w.b = make([]byte, 0, room/2+len(m.ResultJSON))
		w.result(&m)
	case *record:
		w.record(m)
	case Claim:
		w.b = make([]byte, 0, room/4)
		w.claim(&m)
	default:
		return nil, false
	}
	return w.b, !w.odd
}

func (w *writer) call(m *ToolCallMessage) {
	w.b = append(w.b, '{')
	w.always("type", m.Type)
	w.text("tool_use_id", m.ToolUseID)
	w.text("ping_id", m.PingID)
	w.text("tool", m.Tool)
	w.raw("payload", m.Payload)
	w.meta(m.Meta)
	w.text("traceparent", m.TraceParent)
	w.text("tracestate", m.TraceState)
	w.text("baggage", m.Baggage)
	w.text("reply_to", m.ReplyTo)
	w.instant("deadline", m.Deadline)
	w.text("toolset", m.Toolset)
	w.text("contract", m.Contract)
	if r := m.Route; r != nil {
		w.open("route")
		w.always("inbox", r.Inbox)
		w.text("shared", r.Shared)
		w.text("token", r.Token)
		w.flag("claim", r.Claim)
		w.flag("confirm", r.Confirm)
		w.flag("again", r.Again)
		w.close()
	}
	if m.Asks != nil {
		w.open("asks")
		w.asks(m.Asks)
		w.close()
	}
	w.close()
}

func (w *writer) asks(a *Asks) {
	w.flag("sampling", a.Sampling)
	w.flag("elicit_form", a.ElicitForm)
	w.flag("elicit_url", a.ElicitURL)
	w.flag("roots", a.Roots)
	w.raw("declared", a.Declared)
	w.text("client", a.Client)
}

func (w *writer) meta(m *ToolCallMeta) {
	if m == nil {
		return
	}
	w.open("meta")
	w.text("run_id", m.RunID)
	w.text("session_id", m.SessionID)
	w.text("turn_id", m.TurnID)
	w.text("tool_call_id", m.ToolCallID)
	w.text("parent_tool_call_id", m.ParentToolCallID)
	w.text("tenant_id", m.TenantID)
	w.text("user_id", m.UserID)
	w.text("idempotency_key", m.IdempotencyKey)
	w.number("attempt", m.Attempt)
	w.raw("caller", m.Caller)
	w.close()
}

func (w *writer) result(m *ToolResultMessage) {
	w.odd = w.odd || m.Bounds != nil || m.ServerData != nil || m.Error != nil || m.Content != nil
	if w.odd {
		return
	}
	w.b = append(w.b, '{')
	w.always("tool_use_id", m.ToolUseID)
	w.raw("result_json", m.ResultJSON)
	w.flag("is_error", m.IsError)
	w.raw("meta", m.Meta)
	w.raw("wire", m.Wire)
	w.text("wire_kind", m.WireKind)
	if r := m.Receipt; r != nil {
		w.open("receipt")
		w.text("instance", r.Instance)
		w.text("token", r.Token)
		w.text("tenant_id", r.TenantID)
		w.number("notes", r.Notes)
		w.close()
	}
	w.close()
}

func (w *writer) record(r *record) {
	size := room
	if r.Message != nil {
		size += room + len(r.Message.Payload)
	}
	if r.Result != nil {
		size += len(r.Result.ResultJSON)
	}
	w.b = append(make([]byte, 0, size), '{')
	w.key("v")
	w.b = strconv.AppendInt(w.b, int64(r.Version), 10)
	w.always("state", string(r.State))
	w.always("toolset", r.Toolset)
	w.always("tool", r.Tool)
	w.always("digest", r.Digest)
	w.always("token", r.Token)
	w.moment("accepted", r.Accepted)
	w.moment("deadline", r.Deadline)
	if r.Message != nil {
		w.key("message")
		w.call(r.Message)
	}
	w.meta(r.Meta)
	w.text("instance", r.Instance)
	w.number("try", r.Try)
	w.instant("claimed", r.Claimed)
	if r.Result != nil {
		w.key("result")
		w.result(r.Result)
	}
	w.instant("finished", r.Finished)
	w.close()
}

func (w *writer) claim(c *Claim) {
	w.b = append(w.b, '{')
	w.always("tool_use_id", c.ToolUseID)
	w.always("toolset", c.Toolset)
	w.always("instance", c.Instance)
	w.always("token", c.Token)
	w.text("tenant_id", c.TenantID)
	w.number("try", c.Try)
	w.flag("release", c.Release)
	w.close()
}
