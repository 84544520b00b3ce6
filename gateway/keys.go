package gateway

import (
	"reflect"
	"strings"

	"github.com/toolcrib/toolcrib/internal/nearest"
)

// keys are the keys of a section of the file.
type keys struct {
	names []string // in the order of the struct
	index map[string]int
}

// keysOf returns the keys of a struct type: its fields that carry a yaml tag.
func keysOf(t reflect.Type) keys {
	k := keys{index: map[string]int{}}
	for i := range t.NumField() {
		if name := t.Field(i).Tag.Get("yaml"); name != "" {
			k.names = append(k.names, name)
			k.index[name] = i
		}
	}
	return k
}

// expectedKey names the known word that is nearest to got, or all of them when
// none is near.
func expectedKey(got string, known []string) string {
	if best, ok := nearest.Word(got, known); ok {
		return best
	}
	return oneOf(known)
}

func oneOf(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
