package transparency

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toolcrib/toolcrib/tools"
)

// A definition is an entry of a list, as the upstream publishes it.
type definition struct {
	// id is the name, the URI, or the template of one.
	id  string
	raw string
	// output says what the tool declares about its structured content: nothing "", an "object" or "anything".
	output string
}

// A catalogue is what the upstream offers.
type catalogue struct {
	tools, resources, templates, prompts []definition
}

// The list methods, and the member of their answers that holds the entries.
var listMembers = []struct{ method, member, key string }{
	{"tools/list", "tools", "name"},
	{"resources/list", "resources", "uri"},
	{"resources/templates/list", "resourceTemplates", "uriTemplate"},
	{"prompts/list", "prompts", "name"},
}

func (c *catalogue) list(method string) []definition {
	switch method {
	case "tools/list":
		return c.tools
	case "resources/list":
		return c.resources
	case "resources/templates/list":
		return c.templates
	}
	return c.prompts
}

// manyTools are more than a page of the gateway holds.
const manyTools = 1005

func (g *generator) catalogue() *catalogue {
	c := &catalogue{}
	for i := range manyTools {
		c.tools = append(c.tools, g.tool(i))
	}
	for i := range 20 {
		c.resources = append(c.resources, g.resource(i))
		c.prompts = append(c.prompts, g.prompt(i))
	}
	for i := range 12 {
		c.templates = append(c.templates, g.template(i))
	}
	return c
}

// shown are members that every listed thing may have.
func (g *generator) shown() []string {
	members := g.some(60, "title", g.text)
	members = append(members, g.some(70, "description", g.text)...)
	return append(members, g.some(20, "icons", g.icons)...)
}

// tool is the definition of a tool. Some have names that have to be rewritten.
func (g *generator) tool(i int) definition {
	d := definition{id: fmt.Sprintf("%s%d", g.one("tool_", "ns.tool-", "Tool", "with space ", "ключ", "a/b:"), i)}
	members := append(g.shown(), member("name", strconv.Quote(d.id)), member("inputSchema", g.schema()))
	members = append(members, g.some(40, "annotations", g.hints)...)
	members = append(members, g.some(10, "execution", func() string { return `{"taskSupport":"forbidden"}` })...)
	if d.output = g.one("", "", "object", "anything"); d.output != "" {
		members = append(members, member("outputSchema", outputSchema(d.output)))
	}
	d.raw = g.adorned(members...)
	return d
}

func outputSchema(of string) string {
	if of == "object" {
		return `{"type":"object","x-unknown":[1.0]}`
	}
	return `{"description":"anything"}`
}

// schema takes any object, in many words.
func (g *generator) schema() string {
	members := []string{`"type":"object"`}
	members = append(members, g.some(40, "properties", func() string {
		return `{"` + g.one("p", "π", "a.b", "$p") + `":{"default":` + g.value(1) + `,"x-vendor":` + g.value(1) + `}}`
	})...)
	members = append(members, g.some(20, "$schema", func() string {
		return g.one(`"https://json-schema.org/draft/2020-12/schema"`, `"http://json-schema.org/draft-07/schema#"`)
	})...)
	members = append(members, g.some(20, "additionalProperties", func() string { return g.one("true", "{}") })...)
	members = append(members, g.some(20, "$defs", func() string { return `{"x":{"const":123456789012345678901}}` })...)
	members = append(members, g.some(20, "examples", func() string { return g.array(2) })...)
	return g.join(members...)
}

func (g *generator) hints() string {
	members := g.odd(2, 1)
	for _, key := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
		members = append(members, g.some(40, key, func() string { return g.one("true", "false", "null") })...)
	}
	return g.join(append(members, g.some(40, "title", g.text)...)...)
}

func (g *generator) resource(i int) definition {
	d := definition{id: fmt.Sprintf("%s%d", g.one("file:///a%20b/", "https://example.com/é?n=", "ui://page/", "urn:x:"), i)}
	name := g.one(strconv.Quote(fmt.Sprintf("resource %d", i)), `"shared name"`)
	members := append(g.shown(), member("uri", strconv.Quote(d.id)), member("name", name))
	members = append(members, g.some(30, "annotations", g.annotations)...)
	members = append(members, g.some(30, "size", g.number)...)
	members = append(members, g.some(30, "mimeType", g.text)...)
	d.raw = g.adorned(members...)
	return d
}

func (g *generator) template(i int) definition {
	d := definition{id: fmt.Sprintf("%s%d/{id}", g.one("tpl://a/", "https://example.org/t"), i)}
	members := append(g.shown(), member("uriTemplate", strconv.Quote(d.id)), member("name", strconv.Quote(fmt.Sprint("template", i))))
	d.raw = g.adorned(append(members, g.some(30, "annotations", g.annotations)...)...)
	return d
}

func (g *generator) prompt(i int) definition {
	d := definition{id: fmt.Sprintf("%s%d", g.one("prompt", "ask me ", "подсказка"), i)}
	members := append(g.shown(), member("name", strconv.Quote(d.id)))
	members = append(members, g.some(60, "arguments", func() string {
		return `[{"name":"topic","description":` + g.text() + `,"x":` + g.value(1) + `},{"name":"стиль","required":false,"title":` + g.text() + `}]`
	})...)
	d.raw = g.adorned(members...)
	return d
}

// throughName is the name by which a caller of the gateway knows what the upstream calls so.
func throughName(method, id string) string {
	switch {
	case strings.HasPrefix(method, "tools/"):
		return tools.CanonicalName("", id)
	case strings.HasPrefix(method, "prompts/"):
		if tool := tools.CanonicalName("", "prompt_"+id); tool != "prompt_"+id {
			return tool
		}
	}
	return id
}

// page answers a list request with up to size entries from the cursor on.
func page(list []definition, cursor string, size int) (entries, next string) {
	from, _ := strconv.Atoi(strings.TrimPrefix(cursor, "from "))
	to := min(from+size, len(list))
	var raw []string
	for d := range slices.Values(list[from:to]) {
		raw = append(raw, d.raw)
	}
	if to < len(list) {
		next = fmt.Sprint("from ", to)
	}
	return "[" + strings.Join(raw, ",") + "]", next
}
