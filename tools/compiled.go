package tools

import (
	"encoding/json"
	"maps"
	"sync"
	"unsafe"

	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/schema"
)

// compiled holds the schemas of a catalog's tools, so that tools with the same
// schema share one. It is safe for concurrent use.
type compiled struct {
	opts schema.Options

	mu     sync.Mutex // guards byText
	byText map[string]*schema.Schema
}

func newCompiled(resources map[string]json.RawMessage) *compiled {
	return &compiled{opts: schema.Options{Resources: maps.Clone(resources), Owned: true}, byText: map[string]*schema.Schema{}}
}

// compile returns nil for an absent schema. The text belongs to a binding and is
// never changed.
func (c *compiled) compile(raw json.RawMessage) (*schema.Schema, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	raw = rawjson.Trim(raw)
	c.mu.Lock()
	s := c.byText[string(raw)]
	c.mu.Unlock()
	if s != nil {
		return s, nil
	}
	s, err := schema.Compile(raw, &c.opts)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if have := c.byText[string(raw)]; have != nil {
		return have, nil
	}
	c.byText[keyOf(s)] = s
	return s, nil
}

// keyOf returns the text of a schema, which never changes.
func keyOf(s *schema.Schema) string { return unsafe.String(unsafe.SliceData(s.Raw()), len(s.Raw())) }

// spare is how many schemas without a tool are kept at least.
const spare = 64

// trim forgets schemas of tools that are gone, once there are as many of them
// as there are of tools that are there.
func (c *compiled) trim(tools map[string]*binding) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.byText) <= 4*len(tools)+spare {
		return
	}
	kept := make(map[string]*schema.Schema, 2*len(tools))
	for _, b := range tools {
		for _, s := range []*schema.Schema{b.in, b.out} {
			if s != nil {
				kept[keyOf(s)] = s
			}
		}
	}
	c.byText = kept
}
