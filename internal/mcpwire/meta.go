package mcpwire

import (
	"bytes"
	"encoding/json"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// A metaEdit is what is to become of the members of one _meta object.
type metaEdit struct {
	drop  []string          // taken out, if there
	set   []metaMember      // put in, instead of what was there
	merge []json.RawMessage // objects whose members are put in, later ones win
}

type metaMember struct {
	key   string
	value json.RawMessage
}

// editMeta returns params with its _meta changed as the edit says. Every other
// byte stays as it is, and params itself is returned where nothing changes.
// Nil params are taken as {}.
func editMeta(params json.RawMessage, edit *metaEdit) (json.RawMessage, error) {
	if params != nil && rawjson.KindOf(params) != rawjson.KindObject {
		return nil, errNotObject
	}
	old, at := member(params, "_meta")
	meta := old
	if rawjson.KindOf(meta) != rawjson.KindObject {
		meta = nil
	}
	edited, changed := edit.apply(meta)
	if !changed {
		return params, nil
	}
	if params == nil {
		params = json.RawMessage("{}")
	}
	if at >= 0 {
		return splice(params, at, at+len(old), edited), nil
	}
	return prepend(params, append([]byte(`,"_meta":`), edited...), rawjson.Len(params)), nil
}

// member returns the value of the last member of obj with that key and where
// it stands, or -1.
func member(obj json.RawMessage, key string) (value json.RawMessage, at int) {
	at = -1
	it := rawjson.Object(obj)
	for it.Next() {
		if it.KeyIs(key) {
			value, at = it.Value(), it.Offset()
		}
	}
	return value, at
}

// splice replaces the bytes of b from start to end.
func splice(b []byte, start, end int, with []byte) json.RawMessage {
	out := make([]byte, 0, len(b)-(end-start)+len(with))
	out = append(out, b[:start]...)
	out = append(out, with...)
	return append(out, b[end:]...)
}

func (e *metaEdit) apply(meta json.RawMessage) (json.RawMessage, bool) {
	changed := len(e.set) > 0 || len(e.merge) > 0
	out := make([]byte, 1, len(meta)+64*len(e.set)+2)
	out[0] = '{'
	it := rawjson.Object(meta)
	for meta != nil && it.Next() {
		if e.replaces(&it) {
			changed = true
			continue
		}
		out = appendMember(out, it.RawKey(), it.Value())
	}
	if !changed {
		return meta, false
	}
	for i, m := range e.merge {
		out = e.mergeObject(out, m, e.merge[i+1:])
	}
	for _, m := range e.set {
		out = appendMember(out, rawjson.AppendQuoted(nil, m.key), m.value)
	}
	return append(out, '}'), true
}

// replaces reports whether the edit takes out or replaces the current member.
func (e *metaEdit) replaces(it *rawjson.Iter) bool {
	for _, k := range e.drop {
		if it.KeyIs(k) {
			return true
		}
	}
	for _, m := range e.set {
		if it.KeyIs(m.key) {
			return true
		}
	}
	return inAny(e.merge, it)
}

func (e *metaEdit) mergeObject(out []byte, obj json.RawMessage, later []json.RawMessage) []byte {
	it := rawjson.Object(obj)
	for it.Next() {
		if !inAny(later, &it) && !(&metaEdit{drop: e.drop, set: e.set}).replaces(&it) {
			out = appendMember(out, it.RawKey(), it.Value())
		}
	}
	return out
}

func inAny(objects []json.RawMessage, it *rawjson.Iter) bool {
	for _, o := range objects {
		if _, ok := rawjson.Get(o, it.Key()); ok {
			return true
		}
	}
	return false
}

func appendMember(out, rawKey, value []byte) []byte {
	if out[len(out)-1] != '{' {
		out = append(out, ',')
	}
	out = append(out, rawKey...)
	out = append(out, ':')
	return append(out, value...)
}

// requestMeta is what the wire needs of a request's _meta.
type requestMeta struct {
	present       bool
	version       string
	versionSet    bool
	clientInfo    json.RawMessage
	capabilities  json.RawMessage
	progressToken json.RawMessage
	logLevel      string
}

func scanRequestMeta(params json.RawMessage) requestMeta {
	var m requestMeta
	meta, ok := rawjson.Get(params, "_meta")
	if !ok || rawjson.KindOf(meta) != rawjson.KindObject {
		return m
	}
	m.present = true
	it := rawjson.Object(meta)
	for it.Next() {
		m.member(&it)
	}
	return m
}

func (m *requestMeta) member(it *rawjson.Iter) {
	switch {
	case it.KeyIs(metaProgressToken):
		if k := rawjson.KindOf(it.Value()); k == rawjson.KindString || k == rawjson.KindNumber {
			m.progressToken = it.Value()
		}
	case it.KeyIs(MetaProtocolVersion):
		m.version, m.versionSet = rawjson.Unquote(it.Value())
	case it.KeyIs(MetaClientInfo):
		m.clientInfo = it.Value()
	case it.KeyIs(MetaClientCapabilities):
		m.capabilities = it.Value()
	case it.KeyIs(MetaLogLevel):
		m.logLevel, _ = rawjson.Unquote(it.Value())
	}
}

// completeResult makes a result one of the stateless era: it says that it is
// complete unless it says otherwise, and names the server in its _meta unless
// it does so already.
func completeResult(result, serverInfo json.RawMessage) json.RawMessage {
	if result == nil {
		result = json.RawMessage("{}")
	}
	if rawjson.KindOf(result) != rawjson.KindObject || bytes.HasPrefix(result, []byte(completedHead)) {
		return result
	}
	shape := scanResult(result)
	if meta := shape.meta; serverInfo != nil && rawjson.KindOf(meta) == rawjson.KindObject {
		if _, at := member(meta, MetaServerInfo); at < 0 {
			named := prepend(meta, metaMembers(MetaServerInfo, serverInfo), rawjson.Len(meta))
			result = splice(result, shape.metaAt, shape.metaAt+len(meta), named)
		}
	}
	var head []byte
	if !shape.typed {
		head = append(head, `,"resultType":"complete"`...)
	}
	if shape.meta == nil && serverInfo != nil {
		head = append(head, `,"_meta":{`...)
		head = append(head, metaMembers(MetaServerInfo, serverInfo)[1:]...)
		head = append(head, '}')
	}
	return prepend(result, head, shape.members)
}

// completedHead begins a result that lacks nothing.
const completedHead = `{"resultType":"complete","_meta":{"` + MetaServerInfo + `":`

// CompletedHead returns how a complete result of the stateless era begins, up
// to where a comma and more members follow. A handler that keeps long results
// begins them with it: what begins so is sent as it is, without a scan.
func CompletedHead(serverInfo json.RawMessage) []byte {
	return append(append([]byte(completedHead), serverInfo...), '}')
}

func metaMembers(key string, value json.RawMessage) []byte {
	out := append(rawjson.AppendQuoted([]byte{','}, key), ':')
	return append(out, value...)
}

type resultShape struct {
	typed   bool
	meta    json.RawMessage
	metaAt  int
	members int
}

func scanResult(result json.RawMessage) resultShape {
	var s resultShape
	it := rawjson.Object(result)
	for it.Next() {
		s.members++
		switch {
		case it.KeyIs("resultType"):
			s.typed = true
		case it.KeyIs("_meta"):
			s.meta, s.metaAt = it.Value(), it.Offset()
		}
	}
	return s
}

// prepend puts members, each with a comma before it, at the start of an object.
func prepend(obj json.RawMessage, head []byte, members int) json.RawMessage {
	if len(head) == 0 {
		return obj
	}
	start := rawjson.SkipSpace(obj, 0) + 1
	out := make([]byte, 0, len(obj)+len(head))
	out = append(out, obj[:start]...)
	out = append(out, head[1:]...)
	if members > 0 {
		out = append(out, ',')
	}
	return append(out, obj[start:]...)
}
