package gateway

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/httptool"
)

// survey is what the document of a source says of its tools before the source
// is started.
type survey struct {
	names     []string
	tools     []tools.Tool
	unmatched []string // keys that name tools which are not there
	private   []string // why operations are refused that allow_private would permit
}

func surveyOpenAPI(cfg httptool.OpenAPIConfig) func(context.Context) (survey, error) {
	return func(ctx context.Context) (survey, error) {
		p, err := httptool.NewOpenAPI(cfg)
		if err != nil {
			return survey{}, err
		}
		return surveyOf(ctx, p)
	}
}

func surveyManifest(cfg httptool.ManifestConfig) func(context.Context) (survey, error) {
	return func(ctx context.Context) (survey, error) {
		p, err := httptool.NewManifest(cfg)
		if err != nil {
			return survey{}, err
		}
		return surveyOf(ctx, p)
	}
}

// surveyOf asks a provider that needs no connection, and closes it.
func surveyOf(ctx context.Context, p tools.ToolProvider) (survey, error) {
	list, err := p.Discover(ctx)
	out := survey{unmatched: unmatchedPatterns(p, list)}
	for i := range list {
		out.names, out.tools = append(out.names, list[i].Tool.Name), append(out.tools, list[i].Tool)
	}
	if r, ok := p.(tools.Refuser); ok {
		for _, refused := range r.Refused() {
			if errors.Is(refused.Err, httptool.ErrPrivateHost) && !slices.Contains(out.private, refused.Err.Error()) {
				out.private = append(out.private, refused.Err.Error())
			}
		}
	}
	return out, errors.Join(err, p.Close(ctx))
}

// prefixesOf is what the names of an HTTP source's tools begin with.
func prefixesOf(configured, name string) []string {
	switch configured {
	case "":
		return []string{name + "_"}
	case "none":
		return nil
	}
	return []string{configured}
}

// prefixes are what the names of the server's tools can begin with: those of
// resources and prompts always begin with its name.
func (m *MCPServer) prefixes() []string {
	switch m.Prefix {
	case "":
		return []string{m.Name + "_"}
	case "none":
		return nil
	}
	return []string{m.Prefix, m.Name + "_"}
}

// canBring reports whether a tool of that name could be the source's.
func (s *sourceSpec) canBring(name string) bool {
	if s.exact {
		return slices.Contains(s.prefixes, name)
	}
	return len(s.prefixes) == 0 || slices.ContainsFunc(s.prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// unmatchedPatterns names the patterns of include that match nothing, as the
// provider knows them.
func unmatchedPatterns(p tools.ToolProvider, _ []tools.ToolDescriptor) []string {
	u, ok := p.(interface{ Unmatched() []string })
	if !ok {
		return nil
	}
	var out []string
	for _, pattern := range u.Unmatched() {
		out = append(out, fmt.Sprintf("include %q", pattern))
	}
	return out
}

// unmatched names the patterns of include that bring no tool, and the keys of
// tool_policies that are no tool's.
func (m *MCPServer) unmatched(_ tools.ToolProvider, list []tools.ToolDescriptor) []string {
	known := map[string]bool{}
	for i := range list {
		t := &list[i].Tool
		known[t.SourceName], known[t.Name] = true, true
		for _, prefix := range m.prefixes() {
			known[strings.TrimPrefix(t.Name, prefix)] = true
		}
	}
	var out []string
	for _, pattern := range m.Include {
		if !matchesAny(pattern, known) {
			out = append(out, fmt.Sprintf("include %q", pattern))
		}
	}
	return append(out, unmatchedPolicies(m.ToolPolicies, known)...)
}

// unmatched names the keys of tool_policies that are no skill's.
func (p *A2APeer) unmatched(_ tools.ToolProvider, list []tools.ToolDescriptor) []string {
	known := map[string]bool{}
	for i := range list {
		known[list[i].Tool.SourceName] = true
	}
	return unmatchedPolicies(p.ToolPolicies, known)
}

func unmatchedPolicies(policies map[string]Policy, known map[string]bool) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(policies)) {
		if !known[name] {
			out = append(out, fmt.Sprintf("tool_policies %q", name))
		}
	}
	return out
}

// prefixes are what the names of the agent's tools can begin with, where that
// is not for its card to say.
func (p *A2APeer) prefixes() []string {
	if p.Name == "" {
		return nil
	}
	return []string{p.Name + "_"}
}

// matchesAny reports whether a pattern, in which "*" stands for any characters
// and "?" for one, matches one of the names.
func matchesAny(pattern string, names map[string]bool) bool {
	for name := range names {
		if glob(pattern).matches(name) {
			return true
		}
	}
	return false
}
