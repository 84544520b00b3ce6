package toolstest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/toolstest"
)

// brokenVariable names the catalog that TestBroken hands to the suite in a process of its own.
const brokenVariable = "TOOLSTEST_BROKEN"

// broken are catalogs with one fault each, and the test that finds it.
var broken = map[string]struct {
	make  func() tools.ToolCatalog
	found string
}{
	"order":    {func() tools.ToolCatalog { return unsorted{tools.NewCatalog()} }, "List"},
	"bare":     {func() tools.ToolCatalog { return unguarded{tools.NewCatalog(), map[string]tools.ToolDescriptor{}} }, "Road"},
	"visible":  {func() tools.ToolCatalog { return showsAll{tools.NewCatalog()} }, "Visibility"},
	"replaces": {func() tools.ToolCatalog { return overwrites{tools.NewCatalog().(tools.LiveCatalog)} }, "Register"},
}

type unsorted struct{ tools.ToolCatalog }

func (c unsorted) List(f tools.CatalogFilter) []tools.Tool {
	list := c.ToolCatalog.List(f)
	slices.Reverse(list)
	return list
}

type unguarded struct {
	tools.ToolCatalog
	drivers map[string]tools.ToolDescriptor
}

func (c unguarded) Register(d tools.ToolDescriptor) error {
	c.drivers[d.Tool.Name] = d
	return c.ToolCatalog.Register(d)
}

func (c unguarded) Resolve(name string) (tools.ToolDescriptor, bool) {
	d, ok := c.ToolCatalog.Resolve(name)
	d.Invoke = c.drivers[name].Invoke
	return d, ok
}

type showsAll struct{ tools.ToolCatalog }

func (c showsAll) List(f tools.CatalogFilter) []tools.Tool {
	f.GrantedScopes = append(f.GrantedScopes, "read", "write")
	return c.ToolCatalog.List(f)
}

type overwrites struct{ tools.LiveCatalog }

func (c overwrites) Register(d tools.ToolDescriptor) error {
	err := c.LiveCatalog.Register(d)
	if errors.Is(err, tools.ErrToolDuplicateName) {
		return c.Replace([]tools.ToolDescriptor{d})
	}
	return err
}

// TestBroken is the suite in the process that TestSuiteFindsFaults starts.
func TestBroken(t *testing.T) {
	b, ok := broken[os.Getenv(brokenVariable)]
	if !ok {
		t.Skip("it runs in a process of its own")
	}
	toolstest.RunCatalog(t, b.make)
}

func TestSuiteFindsFaults(t *testing.T) {
	for name, b := range broken {
		cmd := exec.Command(os.Args[0], "-test.run=^TestBroken$")
		cmd.Env = append(os.Environ(), brokenVariable+"="+name)
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || !strings.Contains(string(out), "--- FAIL: TestBroken/"+b.found) {
			t.Errorf("%s: the suite did not fail at %s: %v\n%s", name, b.found, err, out)
		}
	}
}

func TestNothingLeftFindsWhatIsLeft(t *testing.T) {
	var inner failing
	toolstest.NothingLeftWithin(&inner, 50*time.Millisecond)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	for _, f := range inner.cleanups {
		f()
	}
	if len(inner.said) != 1 || !strings.Contains(inner.said[0], "held before") {
		t.Errorf("an open pipe: %q", inner.said)
	}
}

// failing is a test that may fail without failing its caller.
type failing struct {
	testing.TB
	cleanups []func()
	said     []string
}

func (f *failing) Helper()                        {}
func (f *failing) Cleanup(c func())               { f.cleanups = append(f.cleanups, c) }
func (f *failing) Errorf(format string, _ ...any) { f.said = append(f.said, format) }
func (f *failing) Context() context.Context       { return context.Background() }
func (f *failing) Fatal(...any)                   { panic("it failed") }
