package provider_test

import (
	"testing"

	"github.com/toolcrib/toolcrib/registry/provider"
	"github.com/toolcrib/toolcrib/tools"
)

// A catalog's tools, served by a worker, are called through the gateway's
// catalog like any other.
func TestCatalogOnAWorker(t *testing.T) {
	c := newCrib(t, nil)
	stop := c.serve("math", provider.FromCatalog(calculator(t)), provider.Options{})
	c.up("math", 1)
	for _, name := range []string{"math.add", "math.book"} {
		d, ok := c.cat.Resolve(name)
		if !ok || d.Tool.Transport != tools.TransportWorker || len(d.Tool.OutSchema) == 0 {
			t.Fatalf("%s: %v, %+v", name, ok, d.Tool)
		}
		res, err := c.call(caller(t), name, `{"a":2,"b":3}`)
		if err != nil || string(res.Structured) != `{"sum":5}` || res.Attempts != 1 {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}
