package mcpserver

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/yosida95/uritemplate/v3"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/view"
)

// An index finds what a caller sees by the names that the protocol has for it:
// URIs of resources, URI templates, names of prompts. Where two sources have
// the same, the tool whose name comes first is found and listed. An index never
// changes.
type index struct {
	// listed shares its texts with the catalog.
	listed    map[tools.Kind][]tools.Tool
	resources map[string]string // names of tools, by URI
	byForm    map[string]string // names of tools, by URI template
	prompts   map[string]prompt
	templates []template
	readers   []reader
	apps      map[string]tools.ToolSourceID // by URI
	// limited are the tools that not everybody sees.
	limited map[string]bool
	// barred are the resources and the templates that the caller does not see:
	// nothing else must read what they stand for.
	barred      map[string]bool // by key
	barredForms []template
}

// A prompt is the tool behind a prompt, and the source's name for it.
type prompt struct{ tool, source string }

// A template is the tool that reads resources whose URIs match.
type template struct {
	tool    string
	source  tools.ToolSourceID
	pattern *regexp.Regexp
}

// A reader is a tool that reads what its source lists nowhere.
type reader struct {
	tool   string
	source tools.ToolSourceID
}

type indexKey struct{}

func (s *Server) index(v view.View) *index { return view.Memo(v, indexKey{}, s.newIndex) }

func (s *Server) newIndex(v view.View) *index {
	x := &index{listed: map[tools.Kind][]tools.Tool{}, resources: map[string]string{}, byForm: map[string]string{},
		prompts: map[string]prompt{}, apps: map[string]tools.ToolSourceID{}, limited: map[string]bool{}, barred: map[string]bool{}}
	for t := range v.All() {
		if t.Kind != tools.KindTool && len(t.AuthScopes)+len(t.Tenants) > 0 {
			x.limited[t.Name] = true
		}
		if other := x.add(t); other != "" {
			s.logger.Info("two sources offer the same; the one whose tool comes first is shown",
				"kind", string(t.Kind), "name", t.SourceName, "shown", other, "hidden", t.Name)
			continue
		}
		x.listed[listKind(t.Kind)] = append(x.listed[listKind(t.Kind)], *t)
	}
	x.bar(v, s.cat.Snapshot())
	return x
}

// listKind is the kind whose list a tool stands in: tools about tools are
// tools.
func listKind(k tools.Kind) tools.Kind {
	if k == tools.KindMeta {
		return tools.KindTool
	}
	return k
}

// bar notes what the view does not show.
func (x *index) bar(v view.View, all *tools.Snapshot) {
	for _, t := range all.OfKind(tools.KindResource) {
		if !v.Has(t.Name) {
			x.barred[mcpwire.ResourceKey(t.SourceName)] = true
		}
	}
	for _, t := range all.OfKind(tools.KindResourceTemplate) {
		if v.Has(t.Name) || len(t.Definition) == 0 {
			continue
		}
		if form, err := uritemplate.New(t.SourceName); err == nil {
			anyCase := regexp.MustCompile("(?i)" + form.Regexp().String())
			x.barredForms = append(x.barredForms, template{t.Name, t.Source, anyCase})
		}
	}
}

// add takes in one tool, unless another has its place, whose name it returns.
func (x *index) add(t *tools.Tool) (taken string) {
	switch t.Kind {
	case tools.KindResource:
		return claim(x.resources, t.SourceName, t.Name)
	case tools.KindResourceTemplate:
		if len(t.Definition) == 0 {
			x.readers = append(x.readers, reader{t.Name, t.Source})
			return ""
		}
		if taken = claim(x.byForm, t.SourceName, t.Name); taken != "" {
			return taken
		}
		if form, err := uritemplate.New(t.SourceName); err == nil {
			x.templates = append(x.templates, template{t.Name, t.Source, form.Regexp()})
		}
	case tools.KindPrompt:
		name := promptName(t)
		if other, ok := x.prompts[name]; ok {
			return other.tool
		}
		x.prompts[name] = prompt{t.Name, t.SourceName}
	default:
		x.addApp(t)
	}
	return ""
}

func claim(names map[string]string, key, tool string) (taken string) {
	if other, ok := names[key]; ok {
		return other
	}
	names[key] = tool
	return ""
}

// addApp notes the page that a tool names for showing what it gives. Such a
// resource need not be listed.
func (x *index) addApp(t *tools.Tool) {
	if !mayHave(t.Definition, "_meta") {
		return
	}
	meta, ok := rawjson.Get(t.Definition, "_meta")
	if !ok {
		return
	}
	for _, path := range [][]string{{"ui", "resourceUri"}, {"ui/resourceUri"}, {"openai/outputTemplate"}} {
		raw, ok := rawjson.Get(meta, path...)
		if !ok {
			continue
		}
		if uri, ok := rawjson.Unquote(raw); ok && x.apps[uri] == "" {
			x.apps[uri] = t.Source
		}
	}
}

// mayHave is a quick look, for a member that most tools do not have. A key may be
// written with escapes.
func mayHave(definition []byte, key string) bool {
	return bytes.Contains(definition, []byte(key)) || bytes.Contains(definition, []byte(`\u`))
}

// promptName is the name under which a prompt is shown: that of its source,
// behind the prefix that its tool has before the word "prompt".
func promptName(t *tools.Tool) string {
	if prefix, ok := strings.CutSuffix(t.Name, "prompt_"+t.SourceName); ok {
		return prefix + t.SourceName
	}
	return t.Name
}

// takers returns the tools that may read a resource by its URI, in the order in
// which to ask them. What no source lists is read by the source whose tool
// names it, or by the only source that there is. What the caller does not see
// is read by none.
func (x *index) takers(uri string) []string {
	if x.barred[mcpwire.ResourceKey(uri)] {
		return nil
	}
	var names []string
	for _, t := range x.templates {
		if t.pattern.MatchString(uri) && !x.bars(t.source, uri) {
			names = append(names, t.tool)
		}
	}
	owner, named := x.apps[uri]
	for _, r := range x.readers {
		if (named && r.source == owner || !named && len(x.readers) == 1) && !x.bars(r.source, uri) {
			names = append(names, r.tool)
			break
		}
	}
	return names
}

// bars reports whether a URI is one of a template of the source that the caller
// does not see.
func (x *index) bars(source tools.ToolSourceID, uri string) bool {
	for _, t := range x.barredForms {
		if t.source == source && (t.pattern.MatchString(uri) || t.pattern.MatchString(mcpwire.NormalURI(uri))) {
			return true
		}
	}
	return false
}

// reads returns the tool that reads a resource for the caller of an index, and
// whether it takes the URI as an argument. A tool whose own check refuses the
// URI does not read it.
func (s *Server) reads(x *index, uri string) (tool string, takesURI, ok bool) {
	if tool, ok := x.resources[uri]; ok {
		return tool, false, true
	}
	for _, name := range x.takers(uri) {
		d, ok := s.cat.Resolve(name)
		if ok && (d.Validate == nil || d.Validate(uriArgument(uri)) == nil) {
			return name, true, true
		}
	}
	return "", false, false
}

func uriArgument(uri string) json.RawMessage {
	return append(rawjson.AppendQuoted([]byte(`{"uri":`), uri), '}')
}
