package gateway

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolcrib/toolcrib/internal/nearest"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/builtin"
)

// Validate returns, as ConfigErrors, what would keep Open from starting with
// the configuration here: what is wrong in it, a reference to a secret that is
// not there, a feature that this version does not have. It also reports what
// would keep a tool of a local document from being served, and an entry of a
// tool that such a document should have and has not. It asks no source.
func (c *Config) Validate() error {
	_, err := c.Examine()
	return err
}

// Examine is Validate, and returns as well what does not keep the gateway from
// starting and is most likely a mistake: an entry of a tool that no source can
// bring, a program that is not there, a pattern that matches nothing. It does
// not know of Go tools that a program registers.
func (c *Config) Examine() (warnings ConfigErrors, err error) {
	sources, err := prepare(c, nil)
	if err != nil {
		return nil, err
	}
	x := &examination{specs: specs{cfg: c}, known: union(union(c.Tools.BuiltIn, builtin.MetaNames()), []string{builtin.FetchName})}
	if c.hasSkillTools() {
		x.known = union(x.known, builtin.SkillNames())
	}
	for i := range sources {
		x.source(&sources[i])
	}
	if c.Workers.wanted() {
		x.others = append(x.others, &sourceSpec{kind: kindWorkers, prefixes: c.Workers.prefixes()})
	}
	if _, said := c.places["workers.enabled"]; c.Workers != nil && !c.Workers.wanted() && !said {
		x.warn("workers", "has no effect, as it says of no stream server", "enabled: true or url beside it")
	}
	for i := range c.Tools.MCPServers {
		x.program(&c.Tools.MCPServers[i], fmt.Sprintf("tools.mcp_servers[%d].command", i))
	}
	if len(x.faults) == 0 { // else they may be what keeps a tool away
		for i, e := range c.Tools.Entries {
			x.entry(e.Name, fmt.Sprintf("tools.entries[%d].name", i))
		}
		x.compositions()
		for i := range c.Toolsets {
			x.patterns(c.Toolsets[i].Include, fmt.Sprintf("toolsets[%d].include", i))
			x.patterns(c.Toolsets[i].Exclude, fmt.Sprintf("toolsets[%d].exclude", i))
		}
	}
	_ = x.warnings.sorted()
	return x.warnings, x.faults.once().sorted()
}

// examination collects what local files tell of a configuration.
type examination struct {
	specs
	warnings ConfigErrors
	known    []string      // the tools that are certain to be there
	surveyed []tools.Tool  // those of known that a local document describes
	read     []*sourceSpec // the sources whose tools are all in known
	others   []*sourceSpec
}

func (x *examination) warn(path, problem, expected string) {
	x.warnings = append(x.warnings, x.cfg.faultAt(path, problem, expected))
}

func (x *examination) source(s *sourceSpec) {
	if s.check != nil {
		if err := s.check(context.Background()); err != nil {
			x.documentFaults(err, s.document)
		}
	}
	if s.local == nil {
		x.others = append(x.others, s)
		return
	}
	found, err := s.local(context.Background())
	if err != nil {
		x.others = append(x.others, s)
		if s.check == nil {
			x.documentFaults(err, s.document)
		}
		return
	}
	x.known, x.read = append(x.known, found.names...), append(x.read, s)
	x.surveyed = append(x.surveyed, found.tools...)
	for _, why := range found.private {
		x.faults = append(x.faults, x.cfg.faultAt(s.at, why, "allow_private: true, if that is meant"))
	}
	for _, key := range found.unmatched {
		x.warn(s.at, key+" matches nothing", "")
	}
}

// entry looks for the tool of an entry. It is certain not to be there when it
// would be a source's whose tools are all known.
func (x *examination) entry(name, at string) {
	could := func(s *sourceSpec) bool { return s.canBring(name) }
	if slices.Contains(x.known, name) || slices.ContainsFunc(x.others, could) {
		return
	}
	owner := slices.IndexFunc(x.read, func(s *sourceSpec) bool { return len(s.prefixes) > 0 && s.canBring(name) })
	switch {
	case owner >= 0:
		s := x.read[owner]
		own := slices.DeleteFunc(slices.Clone(x.known), func(known string) bool { return !s.canBring(known) })
		meant, _ := nearest.Word(name, own)
		x.faults = append(x.faults, x.cfg.faultAt(at, fmt.Sprintf("%q is not a tool of the source %s", clip(name), s.name), meant))
	case slices.Contains(builtin.Names(), name):
		x.warn(at, fmt.Sprintf("%q is a built-in tool that is not offered", name), "it in tools.built_in")
	default:
		meant, _ := nearest.Word(name, x.known)
		x.warn(at, fmt.Sprintf("no source has a tool %q", clip(name)), meant)
	}
}

// patterns warns of those that no tool can match.
func (x *examination) patterns(list []string, at string) {
	for i, p := range list {
		if !x.matched(p) {
			meant, _ := nearest.Word(p, x.known)
			x.warn(fmt.Sprintf("%s[%d]", at, i), fmt.Sprintf("no tool matches %q", clip(p)), meant)
		}
	}
}

// matched reports whether a pattern matches a tool that is known, or may match one
// of a source of which not all are.
func (x *examination) matched(p string) bool {
	if slices.ContainsFunc(x.known, glob(p).matches) {
		return true
	}
	return slices.ContainsFunc(x.others, func(s *sourceSpec) bool {
		switch {
		case s.exact:
			return slices.ContainsFunc(s.prefixes, glob(p).matches)
		case strings.ContainsAny(p, "*?"):
			return true
		}
		return s.canBring(p)
	})
}

// program looks for the program of a stdio server as its start will.
func (x *examination) program(m *MCPServer, at string) {
	if m.mode() != "stdio" || len(m.Command) == 0 {
		return
	}
	name := m.Command[0]
	if strings.ContainsRune(name, filepath.Separator) {
		if _, err := exec.LookPath(absolute(x.cfg.dir, name)); err != nil {
			x.warn(at+"[0]", fmt.Sprintf("%q is not a program on this machine", clip(name)), "")
		}
		return
	}
	if _, err := exec.LookPath(name); err != nil {
		x.warn(at+"[0]", fmt.Sprintf("%q is not found in PATH", clip(name)), "")
	}
}
