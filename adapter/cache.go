package adapter

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"sync"

	"github.com/toolcrib/toolcrib/adapter/subset"
)

// maxForms bounds how many forms an adapter remembers.
const maxForms = 4096

// forms remembers what schemas were compiled to, by their bytes, since an agent
// declares the same tools on every turn. It is safe for concurrent use.
type forms struct {
	mu   sync.Mutex
	kept map[[sha256.Size]byte]compiled
}

// compiled is the form of a schema, or why there is none.
type compiled struct {
	form *subset.Form
	err  error
}

// get returns the form of a schema, compiled at most a few times.
func (f *forms) get(schema json.RawMessage, compile func(json.RawMessage) (*subset.Form, error)) (*subset.Form, error) {
	key := sha256.Sum256(schema)
	f.mu.Lock()
	have, ok := f.kept[key]
	f.mu.Unlock()
	if ok {
		return have.form, have.err
	}
	// The form keeps the schema, whose bytes the caller may change.
	form, err := compile(bytes.Clone(schema))
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.kept == nil || len(f.kept) >= maxForms {
		f.kept = map[[sha256.Size]byte]compiled{}
	}
	f.kept[key] = compiled{form, err}
	return form, err
}
