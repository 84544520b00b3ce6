package mcptool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/spread"
	"github.com/toolcrib/toolcrib/tools"
)

// An inventory collects the descriptors of what a server lists.
type inventory struct {
	server  *Server
	taken   map[string]string // source names, by canonical name
	found   []tools.ToolDescriptor
	refused []tools.Refusal
}

// describeAll turns the entries into descriptors and names those it refuses.
func (s *Server) describeAll(lists []*entryList) (found []tools.ToolDescriptor, refused []tools.Refusal) {
	inv := &inventory{server: s, taken: map[string]string{}}
	shelf := &shelf{}
	has, reads := false, false
	for _, list := range lists {
		inv.addList(list, shelf)
		has = has || list.kind == tools.KindResource
		reads = reads || list.pointsToResources()
		if list.kind == tools.KindTool {
			s.warnOfPolicies(inv.taken)
		}
	}
	if has && reads {
		inv.add(readResource, readResource, func() tools.ToolDescriptor { return s.describeReader(shelf) })
	}
	return inv.found, inv.refused
}

// pointsToResources reports whether there are resources, or tools that name a
// page of theirs.
func (l *entryList) pointsToResources() bool {
	switch l.kind {
	case tools.KindResource, tools.KindResourceTemplate:
		return len(l.entries) > 0
	case tools.KindTool:
		return slices.ContainsFunc(l.entries, func(e json.RawMessage) bool { return bytes.Contains(e, []byte(`"ui://`)) })
	}
	return false
}

func (inv *inventory) refuse(name string, err error) {
	name, err = bound(inv.server.secrets.clean(name), 128), inv.server.secrets.cleanError(err)
	inv.refused = append(inv.refused, tools.Refusal{Name: name, Err: err})
	inv.server.log.Warn("something that the MCP server lists was left out", "name", name, "error", err)
}

func (inv *inventory) addList(list *entryList, shelf *shelf) {
	s := inv.server
	definitions := inv.read(list, shelf)
	shared := repeated(definitions)
	described := s.describeTools(list.kind, definitions)
	inv.found = slices.Grow(inv.found, len(definitions))
	for i, d := range definitions {
		if err := s.checkHeaders(&d); err != nil {
			inv.refuse(d.name, fmt.Errorf("%w: %w", tools.ErrToolInvalid, err))
			continue
		}
		local, tool := localName(&d, shared[d.name]), ""
		if s.filter.takes(local) {
			tool = tools.CanonicalName(s.cfg.prefix(), local)
		}
		shelf.add(&d, tool)
		inv.add(local, d.source(), func() tools.ToolDescriptor {
			if d.kind == tools.KindTool {
				return described[i]
			}
			return s.describeNative(d, local, shelf)
		})
	}
	if list.cut != nil {
		inv.refuse(fmt.Sprintf("%s (end of %s)", s.cfg.Name, list.method), list.cut)
	}
}

// describeTools describes the tools that the filter takes, several at once.
// There are none of other kinds, which depend on what stands before them.
func (s *Server) describeTools(kind tools.Kind, list []definition) []tools.ToolDescriptor {
	if kind != tools.KindTool {
		return nil
	}
	out := make([]tools.ToolDescriptor, len(list))
	spread.Each(len(list), worthAWorker, func(i int) {
		if s.filter.takes(list[i].name) {
			out[i] = s.describe(list[i])
		}
	})
	return out
}

// read returns the entries that can be read. What cannot be, and has a URI, is
// listed all the same.
func (inv *inventory) read(list *entryList, shelf *shelf) []definition {
	found := make([]definition, len(list.entries))
	faults := make([]error, len(list.entries))
	spread.Each(len(found), worthAWorker, func(i int) { found[i], faults[i] = readDefinition(list.kind, list.entries[i]) })
	out := make([]definition, 0, len(found))
	for i, d := range found {
		if err := faults[i]; err != nil {
			shelf.add(&d, "")
			inv.refuse(fmt.Sprintf("%s (entry %d of %s)", inv.server.cfg.Name, i+1, list.method), fmt.Errorf("%w: %w", tools.ErrToolInvalid, err))
			continue
		}
		out = append(out, d)
	}
	return out
}

// worthAWorker is how many entries make up for starting a goroutine.
const worthAWorker = 16

// repeated returns the names that more than one resource of a list has, which is
// allowed.
func repeated(list []definition) map[string]bool {
	if len(list) == 0 || !list[0].isResource() {
		return nil
	}
	seen, twice := map[string]string{}, map[string]bool{}
	for _, d := range list {
		if uri, ok := seen[d.name]; ok && uri != d.uri {
			twice[d.name] = true
		}
		seen[d.name] = d.uri
	}
	return twice
}

// add adds a descriptor unless the filter leaves it out or its name is taken.
func (inv *inventory) add(local, source string, describe func() tools.ToolDescriptor) {
	if !inv.server.filter.takes(local) {
		return
	}
	desc := describe()
	if other, dup := inv.taken[desc.Tool.Name]; dup {
		inv.refuse(source, collision(source, other, desc.Tool.Name))
		return
	}
	inv.taken[desc.Tool.Name] = source
	inv.found = append(inv.found, desc)
}

func collision(name, other, canonical string) error {
	if name == other {
		return fmt.Errorf("%w: the server lists %q twice; the first is taken", tools.ErrToolDuplicateName, bound(name, 128))
	}
	return fmt.Errorf("%w: %q and %q both become %q; the first is taken", tools.ErrToolDuplicateName, bound(other, 128), bound(name, 128), canonical)
}

// checkHeaders refuses a tool that binds arguments to HTTP headers in a way that
// cannot be followed, where it has to be followed.
func (s *Server) checkHeaders(d *definition) error {
	if !s.stateless.Load() || s.cfg.TransportMode != TransportStreamableHTTP || !bindsHeaders(d.input) {
		return nil
	}
	return mcpwire.CheckHeaderBindings(d.input)
}

// warnOfPolicies names policies of tools that are not there.
func (s *Server) warnOfPolicies(taken map[string]string) {
	absent := map[string]bool{}
	for name := range s.cfg.ToolPolicies {
		absent[name] = true
	}
	for _, name := range taken {
		delete(absent, name)
	}
	if len(absent) == 0 {
		return
	}
	names := make([]string, 0, len(absent))
	for name := range absent {
		names = append(names, name)
	}
	slices.Sort(names)
	s.log.Warn("policies name tools that the server does not list", "tools", strings.Join(names, ", "))
}

// schemaNothing is the schema of a tool that takes no arguments.
var schemaNothing = json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)
