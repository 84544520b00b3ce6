package gateway

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/toolcrib/toolcrib/set"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/builtin"
)

// Toolset is a part of the catalog that is served by itself. A tool is in it when
// every key that is set agrees; it follows the catalog. It narrows what a caller
// sees and never grants.
type Toolset struct {
	Name        string   `yaml:"name" rule:"required,source" doc:"Name of the toolset, which is an MCP server of its own at /mcp/NAME."`
	Title       string   `yaml:"title" doc:"Name for people."`
	Description string   `yaml:"description" doc:"What the tools are for; clients of MCP get it as instructions."`
	Include     []string `yaml:"include" doc:"Patterns of the names of tools to take; all when absent."`
	Exclude     []string `yaml:"exclude" doc:"Patterns of the names of tools to leave out."`
	Tags        []string `yaml:"tags" doc:"Tags of which a tool must have one."`
	Namespaces  []string `yaml:"namespaces" doc:"Namespaces of which a tool must be in one."`
	Categories  []string `yaml:"categories" doc:"Categories of which a tool must be in one."`
	Policy      string   `yaml:"policy" doc:"CEL expression over tool and identity that is true for the tools that the caller gets."`
}

func (t *Toolset) same(other *Toolset) bool { return reflect.DeepEqual(t, other) }

// reservedToolsets are names that mean something else: in a path, or on the
// command line.
var reservedToolsets = []string{".", "..", "ls"}

func (c *checker) toolsets(list []Toolset) {
	c.unique("toolsets", len(list), func(i int) string { return list[i].Name })
	for i := range list {
		c.toolset(&list[i], fmt.Sprintf("toolsets[%d]", i))
	}
}

func (c *checker) toolset(t *Toolset, at string) {
	if slices.Contains(reservedToolsets, t.Name) {
		c.fault(at+".name", fmt.Sprintf("%q is reserved", t.Name), "another name")
	}
	c.filters(at, "", t.Include, t.Exclude)
	for _, l := range []struct {
		key, of string
		list    []string
	}{{"include", "pattern", t.Include}, {"tags", "tag", t.Tags}, {"namespaces", "namespace", t.Namespaces}, {"categories", "category", t.Categories}} {
		if l.list != nil && len(l.list) == 0 {
			c.fault(at+"."+l.key, "is empty, so that no tool would be in the toolset", "at least one "+l.of+", or not the key")
		}
		if i := slices.Index(l.list, ""); i >= 0 && l.key != "include" {
			c.fault(fmt.Sprintf("%s.%s[%d]", at, l.key, i), "is empty", "a "+l.of)
		}
	}
	if _, err := compileToolPolicy(t.Policy); err != nil {
		c.fault(at+".policy", err.Error(), "")
	}
}

// build makes the set that a toolset is.
func (t *Toolset) build(registry set.Registry, failed func(tool string, err error)) (*set.Toolset, error) {
	b := set.NewBuilder(t.Name).FromRegistry(registry).WithFilter(t.takes())
	for _, f := range []struct {
		list   []string
		filter func(...string) set.FilterFunc
	}{{t.Tags, set.TagsAny}, {t.Namespaces, set.NamespaceFilter}, {t.Categories, set.CategoryFilter}} {
		if f.list != nil {
			b.WithFilter(orMeans(f.filter(f.list...)))
		}
	}
	program, err := compileToolPolicy(t.Policy)
	if err != nil {
		return nil, fmt.Errorf("gateway: toolset %s: policy: %w", t.Name, err)
	}
	if program != nil {
		b.WithPolicy(newToolPolicy(program, failed))
	}
	return b.Build()
}

// takes is the filter of include and exclude.
func (t *Toolset) takes() set.FilterFunc {
	return func(tool *tools.Tool) bool {
		if isMeans(tool) {
			return !slices.Contains(t.Exclude, tool.Name)
		}
		return (t.Include == nil || anyMatches(t.Include, tool.Name)) && !anyMatches(t.Exclude, tool.Name)
	}
}

// isMeans reports whether a tool is a means to reach others and their results,
// which each toolset has unless it excludes it by name. What it reaches is what is
// in the toolset.
func isMeans(t *tools.Tool) bool {
	switch t.Name {
	case builtin.SearchName, builtin.GetName, builtin.CallName:
		return t.Kind == tools.KindMeta
	case builtin.FetchName:
		return t.Transport == tools.TransportInProcess
	}
	return false
}

func orMeans(f set.FilterFunc) set.FilterFunc {
	return func(t *tools.Tool) bool { return isMeans(t) || f(t) }
}
