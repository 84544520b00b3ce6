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
	w := writer{odd: !has[ToolCallMessage](13) || !has[ToolCallMeta](10) || !has[Route](5) || !has[ToolResultMessage](11) ||
		!has[Receipt](4) || !has[record](13) || !has[Claim](6)}
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
	if m.Meta != nil {
		w.open("meta")
		w.meta(m.Meta)
		w.close()
	}
	w.text("traceparent", m.TraceParent)
	w.text("tracestate", m.TraceState)
	w.text("baggage", m.Baggage)
	w.text("reply_to", m.ReplyTo)
	w.instant("deadline", m.Deadline)
	w.text("contract", m.Contract)
	if r := m.Route; r != nil {
		w.open("route")
		w.always("inbox", r.Inbox)
		w.text("shared", r.Shared)
		w.text("token", r.Token)
		w.flag("claim", r.Claim)
		w.flag("confirm", r.Confirm)
		w.close()
	}
	w.close()
}

func (w *writer) meta(m *ToolCallMeta) {
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
	w.text("instance", r.Instance)
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
	w.flag("release", c.Release)
	w.close()
}

// reader reads the members of JSON objects.
type reader struct {
	doc []byte
	i   int  // where the next value begins
	odd bool // something is left to reflection
}

// quickDecode decodes what most messages are, and reports false for others, when
// what it has filled is of no use. Raw parts of the message are parts of data.
func quickDecode(data []byte, into any) bool {
	r := reader{doc: data, i: rawjson.SkipSpace(data, 0)}
	switch m := into.(type) {
	case *ToolCallMessage:
		object(&r, m, (*reader).call)
	case *ToolResultMessage:
		object(&r, m, (*reader).result)
	case *Claim:
		object(&r, m, (*reader).claim)
	default:
		return false
	}
	return !r.odd && rawjson.SkipSpace(data, r.i) == len(data)
}

// unknown is what the functions return that read a member, of one that they do
// not know.
const unknown = -1

// object reads an object into m. member reads one member, and returns a small
// number that no other has, or unknown.
func object[T any](r *reader, m *T, member func(r *reader, m *T, key []byte) int) {
	if r.i >= len(r.doc) || r.doc[r.i] != '{' {
		r.odd = true
		return
	}
	seen := uint32(0)
	next, done, fault := rawjson.FirstElement(r.doc, r.i, '}')
	for !done && fault == rawjson.FaultNone {
		end, value, plain, wrong := rawjson.ScanKey(r.doc, next)
		if wrong != rawjson.FaultNone || !plain {
			r.odd = true
			return
		}
		r.i = value
		which := member(r, m, r.doc[next+1:end-1])
		if r.odd || which == unknown || seen&(1<<which) != 0 {
			r.odd = true
			return
		}
		seen |= 1 << which
		next, done, fault = rawjson.NextElement(r.doc, r.i, '}')
	}
	r.i = next
	r.odd = r.odd || fault != rawjson.FaultNone
}

// body reads a string without escapes, and returns what is between its quotes.
func (r *reader) body() []byte {
	if r.i >= len(r.doc) || r.doc[r.i] != '"' {
		r.odd = true
		return nil
	}
	start := r.i + 1
	end, plain, fault := rawjson.ScanString(r.doc, r.i)
	if fault != rawjson.FaultNone || !plain {
		r.odd = true
		return nil
	}
	r.i = end
	return r.doc[start : end-1]
}

func (r *reader) text(into *string, which int) int {
	body := r.body()
	r.odd = r.odd || !utf8.Valid(body)
	*into = string(body)
	return which
}

// raw reads any value.
func (r *reader) raw(into *json.RawMessage, which int) int {
	end, err := rawjson.End(r.doc, r.i)
	if err != nil {
		r.odd = true
		return which
	}
	value := r.doc[r.i:end:end]
	r.odd = r.odd || rawjson.Check(value, rawjson.Options{}) != nil
	r.i, *into = end, value
	return which
}

func (r *reader) number(into *int, which int) int {
	end, plain, fault := rawjson.ScanNumber(r.doc, r.i)
	if fault != rawjson.FaultNone || !plain {
		r.odd = true
		return which
	}
	n, err := strconv.Atoi(string(r.doc[r.i:end]))
	r.odd = r.odd || err != nil
	r.i, *into = end, n
	return which
}

func (r *reader) flag(into *bool, which int) int {
	end, fault := rawjson.ScanLiteral(r.doc, r.i)
	if fault != rawjson.FaultNone || r.doc[r.i] == 'n' {
		r.odd = true
		return which
	}
	*into = r.doc[r.i] == 't'
	r.i = end
	return which
}

// instant reads a time in the form that writer.moment gives it.
func (r *reader) instant(into *time.Time, which int) int {
	body := r.body()
	if len(body) < len("2006-01-02T15:04:05Z") || body[13] != ':' || body[16] != ':' || body[19] == ',' {
		r.odd = true
		return which
	}
	at, err := time.Parse(time.RFC3339Nano, string(body))
	r.odd = r.odd || err != nil
	*into = at
	return which
}

func (r *reader) call(m *ToolCallMessage, key []byte) int {
	switch string(key) {
	case "type":
		return r.text(&m.Type, 0)
	case "tool_use_id":
		return r.text(&m.ToolUseID, 1)
	case "ping_id":
		return r.text(&m.PingID, 2)
	case "tool":
		return r.text(&m.Tool, 3)
	case "payload":
		return r.raw(&m.Payload, 4)
	case "meta":
		m.Meta = &ToolCallMeta{}
		object(r, m.Meta, (*reader).meta)
		return 5
	case "traceparent":
		return r.text(&m.TraceParent, 6)
	case "tracestate":
		return r.text(&m.TraceState, 7)
	case "baggage":
		return r.text(&m.Baggage, 8)
	case "reply_to":
		return r.text(&m.ReplyTo, 9)
	case "deadline":
		return r.instant(&m.Deadline, 10)
	case "contract":
		return r.text(&m.Contract, 11)
	case "route":
		m.Route = &Route{}
		object(r, m.Route, (*reader).route)
		return 12
	}
	return unknown
}

func (r *reader) meta(m *ToolCallMeta, key []byte) int {
	switch string(key) {
	case "run_id":
		return r.text(&m.RunID, 0)
	case "session_id":
		return r.text(&m.SessionID, 1)
	case "turn_id":
		return r.text(&m.TurnID, 2)
	case "tool_call_id":
		return r.text(&m.ToolCallID, 3)
	case "parent_tool_call_id":
		return r.text(&m.ParentToolCallID, 4)
	case "tenant_id":
		return r.text(&m.TenantID, 5)
	case "user_id":
		return r.text(&m.UserID, 6)
	case "idempotency_key":
		return r.text(&m.IdempotencyKey, 7)
	case "attempt":
		return r.number(&m.Attempt, 8)
	case "caller":
		return r.raw(&m.Caller, 9)
	}
	return unknown
}

func (r *reader) route(m *Route, key []byte) int {
	switch string(key) {
	case "inbox":
		return r.text(&m.Inbox, 0)
	case "shared":
		return r.text(&m.Shared, 1)
	case "token":
		return r.text(&m.Token, 2)
	case "claim":
		return r.flag(&m.Claim, 3)
	case "confirm":
		return r.flag(&m.Confirm, 4)
	}
	return unknown
}

func (r *reader) result(m *ToolResultMessage, key []byte) int {
	switch string(key) {
	case "tool_use_id":
		return r.text(&m.ToolUseID, 0)
	case "result_json":
		return r.raw(&m.ResultJSON, 1)
	case "is_error":
		return r.flag(&m.IsError, 2)
	case "meta":
		return r.raw(&m.Meta, 3)
	case "wire":
		return r.raw(&m.Wire, 4)
	case "wire_kind":
		return r.text(&m.WireKind, 5)
	case "receipt":
		m.Receipt = &Receipt{}
		object(r, m.Receipt, (*reader).receipt)
		return 6
	}
	return unknown
}

func (r *reader) receipt(m *Receipt, key []byte) int {
	switch string(key) {
	case "instance":
		return r.text(&m.Instance, 0)
	case "token":
		return r.text(&m.Token, 1)
	case "tenant_id":
		return r.text(&m.TenantID, 2)
	case "notes":
		return r.number(&m.Notes, 3)
	}
	return unknown
}

func (r *reader) claim(c *Claim, key []byte) int {
	switch string(key) {
	case "tool_use_id":
		return r.text(&c.ToolUseID, 0)
	case "toolset":
		return r.text(&c.Toolset, 1)
	case "instance":
		return r.text(&c.Instance, 2)
	case "token":
		return r.text(&c.Token, 3)
	case "tenant_id":
		return r.text(&c.TenantID, 4)
	case "release":
		return r.flag(&c.Release, 5)
	}
	return unknown
}
