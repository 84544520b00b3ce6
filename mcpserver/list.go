package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/view"
)

// The lists of the protocol.
const (
	listOfTools = iota
	listOfResources
	listOfTemplates
	listOfPrompts
	listCount
)

// formats are the shapes of a list in the two eras.
type formats struct {
	// changed is the notification that tells of a change.
	changed             string
	stateful, stateless *view.Format
}

// newFormats: the stateless era wants to know for how long and for whom a list
// may be kept. What a caller sees depends on who it is, so a list is private.
func (s *Server) newFormats() [listCount]formats {
	head := fmt.Sprintf(`%s,"ttlMs":%d,"cacheScope":"private",`, mcpwire.CompletedHead(s.info()), max(s.opts.ListTTL, 0).Milliseconds())
	list := func(member, changed string, pick func(view.View) []tools.Tool, stateful, stateless func(tools.Tool) []byte) formats {
		opening := `"` + member + `":[`
		return formats{
			changed:   changed,
			stateful:  &view.Format{Pick: pick, Element: stateful, Head: "{" + opening, Tail: `]}`},
			stateless: &view.Format{Pick: pick, Element: stateless, Head: head + opening, Tail: `]}`},
		}
	}
	listed := func(kind tools.Kind) func(view.View) []tools.Tool {
		return func(v view.View) []tools.Tool { return s.index(v).listed[kind] }
	}
	stateful, stateless := defineStateful, defineStateless
	if s.opts.Bounder != nil {
		stateful, stateless = defineBounded, defineBounded
	}
	return [listCount]formats{
		listOfTools:     list("tools", notifyToolsChanged, listed(tools.KindTool), stateful, stateless),
		listOfResources: list("resources", notifyResourcesChanged, listed(tools.KindResource), defineResource, defineResource),
		listOfTemplates: list("resourceTemplates", notifyResourcesChanged, listed(tools.KindResourceTemplate), defineTemplate, defineTemplate),
		listOfPrompts:   list("prompts", notifyPromptsChanged, listed(tools.KindPrompt), definePrompt, definePrompt),
	}
}

func (f *formats) of(sess *mcpwire.Session) *view.Format {
	if sess.Era() == mcpwire.EraStateless {
		return f.stateless
	}
	return f.stateful
}

// list answers a request for one of the lists.
func (s *Server) list(ctx context.Context, r *mcpwire.Request, kind int) (json.RawMessage, error) {
	cursor, err := cursorOf(r.Params)
	if err != nil {
		return nil, err
	}
	format := s.lists[kind].of(r.Session)
	list := s.listFor(ctx, kind, format)
	if c := clientOf(r.Session); c != nil && cursor == "" {
		c.show(ctx, kind, list)
	}
	if cursor == "" && list.Len() <= s.opts.PageSize {
		return list.Whole(), nil
	}
	page, err := list.Page(cursor, s.opts.PageSize)
	if err != nil {
		return nil, mcpwire.Errorf(mcpwire.CodeInvalidParams, "invalid cursor: expected the nextCursor of the page before")
	}
	return pageResult(format, page), nil
}

// Warm encodes the lists that the caller on ctx is shown, for clients of the
// revisions with sessions. They are kept for every caller of the same class
// until the catalog changes, so that the first client finds them ready.
func (s *Server) Warm(ctx context.Context) {
	ctx = s.narrowed(ctx)
	for kind := range s.lists {
		s.listFor(ctx, kind, s.lists[kind].stateful)
	}
}

// listFor returns the list of a kind that the caller on ctx is shown.
func (s *Server) listFor(ctx context.Context, kind int, format *view.Format) *view.List {
	if kind == listOfTools && s.opts.Discovery != nil {
		return format.Declared(s.declared(ctx))
	}
	return format.List(view.From(ctx, s.cat))
}

func pageResult(format *view.Format, page view.Page) json.RawMessage {
	out := make([]byte, 0, len(format.Head)+len(page.Elements)+len(page.Next)+32)
	out = append(out, format.Head...)
	out = append(out, page.Elements...)
	if page.Next == "" {
		return append(out, format.Tail...)
	}
	out = append(out, `],"nextCursor":`...)
	out = rawjson.AppendQuoted(out, page.Next)
	return append(out, '}')
}

// cursorOf reads the cursor of a list request; absent, null and empty are the
// start.
func cursorOf(params json.RawMessage) (string, error) {
	v, ok := rawjson.Get(params, "cursor")
	if !ok || rawjson.KindOf(v) == rawjson.KindNull {
		return "", nil
	}
	cursor, ok := rawjson.Unquote(v)
	if !ok {
		return "", mcpwire.Errorf(mcpwire.CodeInvalidParams, `invalid cursor: "cursor" must be a string`)
	}
	return cursor, nil
}
