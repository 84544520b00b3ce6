package turn

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// DefaultKeys names what a call concerns: the values of those of its arguments
// that usually identify a thing (path, file, filename, file_path, filepath, uri,
// url, id, key, name), within the tool's source and namespace, and for a stateful
// tool that source and namespace itself.
func DefaultKeys(tool *tools.Tool, args json.RawMessage) []string {
	var keys []string
	if tool.SideEffects == tools.SideEffectStateful {
		keys = append(keys, scopeOf(tool))
	}
	for it := rawjson.Object(args); it.Next(); {
		if !identifies(it.RawKey()) {
			continue
		}
		if kind := rawjson.KindOf(it.Value()); kind == rawjson.KindString || kind == rawjson.KindNumber {
			keys = append(keys, scopeOf(tool)+text(it.Value()))
		}
	}
	return keys
}

func scopeOf(tool *tools.Tool) string {
	return string(tool.Source) + "\x00" + tool.Namespace + "\x00"
}

// identifies reports whether an argument says which thing a call concerns.
func identifies(rawKey []byte) bool {
	key := rawKey[1 : len(rawKey)-1]
	if bytes.IndexByte(key, '\\') >= 0 {
		plain, _ := rawjson.Unquote(rawKey)
		key = []byte(plain)
	}
	switch string(key) {
	case "path", "file", "filename", "file_path", "filepath", "uri", "url", "id", "key", "name":
		return true
	}
	return false
}

// text returns the text of a JSON string or number.
func text(raw []byte) string {
	if s, ok := rawjson.Unquote(raw); ok {
		return s
	}
	return string(raw)
}

// order finds out which calls wait for which: two calls that concern the same
// thing run in call order, unless both are known to change nothing.
type order struct {
	last    map[string]int   // the last call that may change a thing
	readers map[string][]int // the calls since then that only read it
}

// place returns the calls that a call must wait for, and is asked in call order.
func (o *order) place(index int, tool *tools.Tool, keys []string) []int {
	var before []int
	if tool.Exclusive {
		before = o.concern("\x00exclusive\x00"+tool.Name, index, true, before)
	}
	for _, key := range keys {
		before = o.concern("\x00key\x00"+key, index, tool.Safety.ReadOnly != tools.Yes, before)
	}
	slices.Sort(before)
	return slices.DeleteFunc(slices.Compact(before), func(i int) bool { return i == index })
}

func (o *order) concern(key string, index int, changes bool, before []int) []int {
	if o.last == nil {
		o.last, o.readers = map[string]int{}, map[string][]int{}
	}
	if last, ok := o.last[key]; ok {
		before = append(before, last)
	}
	if !changes {
		o.readers[key] = append(o.readers[key], index)
		return before
	}
	before = append(before, o.readers[key]...)
	o.last[key] = index
	delete(o.readers, key)
	return before
}
