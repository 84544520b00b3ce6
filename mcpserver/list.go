package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/view"
)

// formats are the shapes of a tool list in the two eras.
type formats struct{ stateful, stateless *view.Format }

// newFormats: the stateless era wants to know for how long and for whom a list
// may be kept. What a caller sees depends on who it is, so a list is private.
func newFormats(info json.RawMessage, ttl time.Duration) formats {
	return formats{
		stateful: &view.Format{Element: defineStateful, Head: `{"tools":[`, Tail: `]}`},
		stateless: &view.Format{
			Element: defineStateless,
			Head:    fmt.Sprintf(`%s,"ttlMs":%d,"cacheScope":"private","tools":[`, mcpwire.CompletedHead(info), max(ttl, 0).Milliseconds()),
			Tail:    `]}`,
		},
	}
}

func (f *formats) of(sess *mcpwire.Session) *view.Format {
	if sess.Era() == mcpwire.EraStateless {
		return f.stateless
	}
	return f.stateful
}

// listTools answers tools/list.
func (s *Server) listTools(ctx context.Context, r *mcpwire.Request) (json.RawMessage, error) {
	cursor, err := cursorOf(r.Params)
	if err != nil {
		return nil, err
	}
	format := s.formats.of(r.Session)
	list := format.List(view.From(ctx, s.cat))
	if c := clientOf(r.Session); c != nil && cursor == "" {
		c.show(ctx, list)
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
