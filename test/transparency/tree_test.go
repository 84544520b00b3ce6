package transparency

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// A tree is a JSON value in which only that can be told apart which means something: the order of members, space, and
// the way a character of a string is escaped do not stand in it. Numbers are the text they were sent as.
type tree struct {
	scalar   string // of what is neither object nor array
	kind     rawjson.Kind
	members  []branch // of an object, in the order of their keys
	elements []*tree
}

type branch struct {
	key   string
	value *tree
}

// parse returns nil for no value.
func parse(raw json.RawMessage) *tree {
	if raw == nil {
		return nil
	}
	t := &tree{kind: rawjson.KindOf(raw)}
	switch t.kind {
	case rawjson.KindObject:
		for it := rawjson.Object(raw); it.Next(); {
			t.members = append(t.members, branch{it.Key(), parse(it.Value())})
		}
		slices.SortStableFunc(t.members, func(a, b branch) int { return strings.Compare(a.key, b.key) })
	case rawjson.KindArray:
		for it := rawjson.Array(raw); it.Next(); {
			t.elements = append(t.elements, parse(it.Value()))
		}
	case rawjson.KindString:
		text, _ := rawjson.Unquote(raw)
		t.scalar = string(rawjson.Quote(text))
		if strings.ContainsRune(text, '\uFFFD') { // half a character, perhaps, which is known by its escape
			t.scalar = string(raw)
		}
	default:
		t.scalar = string(rawjson.Trim(raw))
	}
	return t
}

// String is "" for no value.
func (t *tree) String() string {
	if t == nil {
		return ""
	}
	var parts []string
	switch t.kind {
	case rawjson.KindObject:
		for _, m := range t.members {
			parts = append(parts, string(rawjson.Quote(m.key))+":"+m.value.String())
		}
		return "{" + strings.Join(parts, ",") + "}"
	case rawjson.KindArray:
		for _, e := range t.elements {
			parts = append(parts, e.String())
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	return t.scalar
}

// get returns the member at a path, or nil.
func (t *tree) get(path ...string) *tree {
	for _, key := range path {
		if t == nil {
			return nil
		}
		i := slices.IndexFunc(t.members, func(m branch) bool { return m.key == key })
		if i < 0 {
			return nil
		}
		t = t.members[i].value
	}
	return t
}

func (t *tree) drop(keys ...string) {
	if t != nil {
		t.members = slices.DeleteFunc(t.members, func(m branch) bool { return slices.Contains(keys, m.key) })
	}
}

// put sets a member that is there.
func (t *tree) put(key, raw string) {
	if old := t.get(key); old != nil {
		*old = *parse(json.RawMessage(raw))
	}
}

// dropMeta takes members out of _meta, and _meta when nothing is left.
func (t *tree) dropMeta(keys ...string) {
	meta := t.get("_meta")
	meta.drop(keys...)
	if meta != nil && meta.kind == rawjson.KindObject && len(meta.members) == 0 {
		t.drop("_meta")
	}
}
