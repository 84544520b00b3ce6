package mcptool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

const (
	maxPages = 2000
	maxTools = 50000
	// pageWait bounds how long one page is waited for.
	pageWait = time.Minute
	// relistPause is when a list that could not be read is asked for again.
	relistPause = 10 * time.Second
)

// A toolList is what a server lists.
type toolList struct {
	entries []json.RawMessage
	ttl     time.Duration
	page    json.RawMessage // the last one
	// cut says why the list was not read to its end; nil when it was.
	cut error
}

// Discover lists the server's tools, connecting first if there is no
// connection. What cannot be described is left out and found in Refused; the
// rest is returned in the server's order. The error is a *[tools.Error].
func (s *Server) Discover(ctx context.Context) ([]tools.ToolDescriptor, error) {
	s.listing.Lock()
	defer s.listing.Unlock()
	list, err := s.readList(ctx)
	if err != nil {
		e := s.failure(ctx, "", "listing its tools", err)
		s.note(e)
		s.relist()
		return nil, e
	}
	found, refused := s.describeAll(list)
	s.keep(len(found), refused)
	s.changes.expire(list.ttl)
	return found, nil
}

// relist asks for a list that was there once to be read again.
func (s *Server) relist() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listed {
		s.changes.expire(relistPause)
	}
}

func (s *Server) keep(count int, refused []tools.Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed, s.count, s.refused, s.lastErr = true, count, refused, ""
}

// readList reads the whole list, once more from its beginning if the
// connection turns out to be lost.
func (s *Server) readList(ctx context.Context) (*toolList, error) {
	for again := true; ; again = false {
		conn, err := s.shared.get(ctx, true)
		if err != nil {
			return nil, err
		}
		s.changes.reading()
		list, err := readPages(ctx, conn.client)
		if err == nil || !again || conn.alive() || ctx.Err() != nil {
			return list, err
		}
	}
}

// readPages follows the pages of tools/list to the end, or to where they go
// round in a circle.
func readPages(ctx context.Context, c *mcpwire.Client) (*toolList, error) {
	list := &toolList{}
	cursors := map[string]bool{}
	var params json.RawMessage
	for page := 1; ; page++ {
		next, err := list.readPage(ctx, c, params)
		switch {
		case err != nil:
			return nil, err
		case next == "":
			return list, nil
		case cursors[next]:
			list.cut = fmt.Errorf("page %d names a cursor that was followed before", page)
		case page >= maxPages:
			list.cut = fmt.Errorf("the list has more than %d pages", maxPages)
		case len(list.entries) > maxTools:
			list.cut = fmt.Errorf("the list has more than %d tools", maxTools)
		}
		if list.cut != nil {
			return list, nil
		}
		cursors[next] = true
		params = append(rawjson.AppendQuoted([]byte(`{"cursor":`), next), '}')
	}
}

// readPage adds one page and returns the cursor of the next.
func (l *toolList) readPage(ctx context.Context, c *mcpwire.Client, params json.RawMessage) (next string, err error) {
	ctx, cancel := context.WithTimeout(ctx, pageWait)
	defer cancel()
	raw, err := c.Call(ctx, "tools/list", params, nil)
	if err != nil {
		return "", withoutTools(c, err)
	}
	var page json.RawMessage
	it := rawjson.Object(raw)
	for it.Next() {
		switch {
		case it.KeyIs("tools"):
			page = it.Value()
		case it.KeyIs("nextCursor"):
			next, _ = rawjson.Unquote(it.Value())
		case it.KeyIs("ttlMs"):
			l.addTTL(it.Value())
		}
	}
	if rawjson.KindOf(page) != rawjson.KindArray {
		return "", errors.New(`the answer to tools/list has no array "tools"`)
	}
	if len(l.entries) > 0 && bytes.Equal(page, l.page) {
		l.cut = errors.New("a page is the same as the one before")
		return "", nil
	}
	l.page = page
	for each := rawjson.Array(page); each.Next(); {
		l.entries = append(l.entries, each.Value())
	}
	return next, nil
}

// withoutTools forgives a server that declares no tools and knows no list.
func withoutTools(c *mcpwire.Client, err error) error {
	_, declared := rawjson.Get(c.Server().Capabilities, "tools")
	if !declared && errors.Is(err, &RPCError{Code: mcpwire.CodeMethodNotFound}) {
		return nil
	}
	return err
}

// addTTL keeps the shortest time to live of the pages.
func (l *toolList) addTTL(raw json.RawMessage) {
	var ms float64
	if json.Unmarshal(raw, &ms) != nil || ms <= 0 || ms > float64(24*time.Hour/time.Millisecond) {
		return
	}
	if ttl := time.Duration(ms * float64(time.Millisecond)); l.ttl == 0 || ttl < l.ttl {
		l.ttl = ttl
	}
}

// describeAll turns the entries into descriptors and names those it refuses.
func (s *Server) describeAll(list *toolList) (found []tools.ToolDescriptor, refused []tools.Refusal) {
	taken := make(map[string]string, len(list.entries)) // source names, by canonical name
	refuse := func(name string, err error) {
		refused = append(refused, tools.Refusal{Name: bound(name, 128), Err: err})
		s.log.Warn("tool of the MCP server left out", "tool", bound(name, 128), "error", err)
	}
	for i, raw := range list.entries {
		d, err := readDefinition(raw)
		if err != nil {
			refuse(fmt.Sprintf("%s (entry %d)", s.cfg.Name, i+1), fmt.Errorf("%w: %w", tools.ErrToolInvalid, err))
			continue
		}
		if !s.filter.takes(d.name) {
			continue
		}
		desc := s.describe(d)
		if other, dup := taken[desc.Tool.Name]; dup {
			refuse(d.name, collision(d.name, other, desc.Tool.Name))
			continue
		}
		taken[desc.Tool.Name] = d.name
		found = append(found, desc)
	}
	if list.cut != nil {
		refuse(s.cfg.Name+" (end of the list)", list.cut)
	}
	s.warnOfPolicies(taken)
	return found, refused
}

func collision(name, other, canonical string) error {
	if name == other {
		return fmt.Errorf("%w: the server lists two tools named %q; the first is taken", tools.ErrToolDuplicateName, bound(name, 128))
	}
	return fmt.Errorf("%w: %q and %q both become %q; the first is taken", tools.ErrToolDuplicateName, bound(other, 128), bound(name, 128), canonical)
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
