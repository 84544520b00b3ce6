package registry

import (
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

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
	if r.i >= len(r.doc) {
		r.odd = true
		return which
	}
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
	case "toolset":
		return r.text(&m.Toolset, 14)
	case "contract":
		return r.text(&m.Contract, 11)
	case "route":
		m.Route = &Route{}
		object(r, m.Route, (*reader).route)
		return 12
	case "asks":
		m.Asks = &Asks{}
		object(r, m.Asks, (*reader).asks)
		return 13
	}
	return unknown
}

func (r *reader) asks(a *Asks, key []byte) int {
	switch string(key) {
	case "sampling":
		return r.flag(&a.Sampling, 0)
	case "elicit_form":
		return r.flag(&a.ElicitForm, 1)
	case "elicit_url":
		return r.flag(&a.ElicitURL, 2)
	case "roots":
		return r.flag(&a.Roots, 3)
	case "declared":
		return r.raw(&a.Declared, 4)
	case "client":
		return r.text(&a.Client, 5)
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
	case "again":
		return r.flag(&m.Again, 5)
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
	case "try":
		return r.number(&c.Try, 5)
	case "release":
		return r.flag(&c.Release, 6)
	}
	return unknown
}
