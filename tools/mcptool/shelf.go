package mcptool

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/yosida95/uritemplate/v3"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// A shelf is the resources and resource templates that a server lists, also
// those that have no tool. It is complete before a call can reach it, and does
// not change then. It keeps a tool that takes a URI from reading what another
// tool reads, whose scopes, tenants and state would be gone round.
type shelf struct {
	keys  map[string]bool // of the resources
	forms []*form
}

// A form is a resource template.
type form struct {
	text string
	// tool is the canonical name of the tool that reads them; empty if there is
	// none.
	tool string
	// follows matches the URIs that the tool of the template takes; nil for a
	// template that cannot be understood, which is left to the server.
	follows *regexp.Regexp
	// claims matches the URIs that belong to it before other templates that
	// are less particular. It is nil for one that cannot be understood and
	// begins with a variable.
	claims *regexp.Regexp
	// head is the text before the first variable in lower case.
	head string
	// literals is how many bytes of it are no variables: the more, the more
	// particular it is.
	literals int
}

func newForm(text string) *form {
	head, _, _ := strings.Cut(text, "{")
	f := &form{text: text, head: strings.ToLower(head), literals: literalsOf(text)}
	if t, err := uritemplate.New(text); err == nil {
		f.follows = t.Regexp()
		f.claims = regexp.MustCompile("(?i)" + f.follows.String())
	} else if head != "" {
		f.claims = regexp.MustCompile("(?i)^" + regexp.QuoteMeta(head))
	}
	return f
}

func literalsOf(template string) int {
	count, inside := 0, false
	for i := range len(template) {
		switch {
		case template[i] == '{':
			inside = true
		case template[i] == '}':
			inside = false
		case !inside:
			count++
		}
	}
	return count
}

func (f *form) claimsURI(uri string) bool {
	return f.claims != nil && (f.claims.MatchString(uri) || f.claims.MatchString(mcpwire.NormalURI(uri)))
}

// surrounds reports whether a URI begins like those of the template, whether
// or not it is one.
func (f *form) surrounds(uri string) bool {
	return f.head != "" && (strings.HasPrefix(strings.ToLower(uri), f.head) || strings.HasPrefix(strings.ToLower(mcpwire.NormalURI(uri)), f.head))
}

// add takes in what is listed; tool is the canonical name of its tool, if it has
// one.
func (s *shelf) add(d *definition, tool string) {
	switch {
	case d.uri == "":
	case d.kind == tools.KindResource:
		if s.keys == nil {
			s.keys = map[string]bool{}
		}
		s.keys[mcpwire.ResourceKey(d.uri)] = true
	case d.kind == tools.KindResourceTemplate:
		f := newForm(d.uri)
		f.tool = tool
		s.forms = append(s.forms, f)
	}
}

func (s *shelf) lists(uri string) bool { return s.keys[mcpwire.ResourceKey(uri)] }

// errNoResource is how a resource is refused that does not exist, and one that
// is for another tool: nobody learns which it is.
func errNoResource() error { return mcpwire.Errorf(mcpwire.CodeResourceNotFound, "Resource not found") }

// refuses returns an error for arguments that name something listed, or that
// could be taken for it.
func (s *shelf) refuses(args json.RawMessage) error {
	uri := uriOf(args)
	if s.lists(uri) {
		return errNoResource()
	}
	for _, f := range s.forms {
		if f.claimsURI(uri) || f.surrounds(uri) {
			return errNoResource()
		}
	}
	return nil
}

// accepts returns the check of the arguments for a template: the URI must be
// one of it, must not be a listed resource, and must not belong to a template
// that is more particular. Of two that are as particular, the first has it.
func (s *shelf) accepts(template string) func(json.RawMessage) error {
	own := newForm(template)
	return func(args json.RawMessage) error {
		uri := uriOf(args)
		if own.follows != nil && !own.follows.MatchString(uri) {
			return fmt.Errorf("uri: expected a URI of the form %s", template)
		}
		if s.lists(uri) {
			return errNoResource()
		}
		before := true
		for _, f := range s.forms {
			if f.text == own.text {
				before = false
				continue
			}
			if (f.literals > own.literals || before && f.literals == own.literals) && f.claimsURI(uri) {
				return errNoResource()
			}
		}
		return nil
	}
}

// hides reports whether a URI is also one of a template whose tool the caller on
// ctx does not see. Without a catalog on ctx nothing is hidden.
func (s *shelf) hides(ctx context.Context, tool, uri string) bool {
	cat, _ := tools.Catalog(ctx)
	live, ok := cat.(tools.Snapshotter)
	if !ok {
		return false
	}
	var visible *tools.VisibleSet
	for _, f := range s.forms {
		if f.tool == "" || f.tool == tool || !f.claimsURI(uri) {
			continue
		}
		if visible == nil {
			visible = live.Snapshot().Visible(tools.CallFrom(ctx).Filter(ctx))
		}
		if !visible.Has(f.tool) {
			return true
		}
	}
	return false
}

func uriOf(args json.RawMessage) string {
	raw, _ := rawjson.Get(args, "uri")
	uri, _ := rawjson.Unquote(raw)
	return uri
}
