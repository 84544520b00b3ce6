package mcptool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

const (
	maxPages = 2000
	// maxEntries bounds each list of a server.
	maxEntries = 10000
	// pageWait bounds how long one page is waited for.
	pageWait = time.Minute
	// relistPause is when a list that could not be read is asked for again.
	relistPause = 10 * time.Second
)

// A listing is one of the lists that a server may have.
type listing struct {
	kind   tools.Kind
	method string
	// member of the answer holds the entries, and is what they are called.
	member string
	// capability declares the list.
	capability string
}

func listings() []listing {
	return []listing{
		{tools.KindTool, "tools/list", "tools", "tools"},
		{tools.KindResource, "resources/list", "resources", "resources"},
		{tools.KindResourceTemplate, "resources/templates/list", "resourceTemplates", "resources"},
		{tools.KindPrompt, "prompts/list", "prompts", "prompts"},
	}
}

func declares(p mcpwire.Peer, path ...string) bool {
	_, ok := rawjson.Get(p.Capabilities, path...)
	return ok
}

// An entryList is what a server lists of one kind.
type entryList struct {
	listing
	entries []json.RawMessage
	ttl     time.Duration
	page    json.RawMessage // the last one
	// cut says why the list was not read to its end; nil when it was.
	cut error
}

// Discover lists what the server offers, connecting first if there is no
// connection: its tools, and as further tools its resources, resource
// templates and prompts. What cannot be described is left out and found in
// Refused; the rest is returned in the server's order. The error is a
// *[tools.Error].
func (s *Server) Discover(ctx context.Context) ([]tools.ToolDescriptor, error) {
	s.listing.Lock()
	defer s.listing.Unlock()
	lists, err := s.readLists(ctx)
	if err != nil {
		e := s.failure(ctx, "", "listing its tools", err)
		s.note(e)
		s.relist()
		return nil, e
	}
	found, refused := s.describeAll(lists)
	s.keep(len(found), refused)
	s.changes.expire(shortestTTLOf(lists))
	return found, nil
}

func shortestTTLOf(lists []*entryList) time.Duration {
	var ttl time.Duration
	for _, l := range lists {
		if l.ttl > 0 && (ttl == 0 || l.ttl < ttl) {
			ttl = l.ttl
		}
	}
	return ttl
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

// readLists reads all lists whole, once more from their beginning if the
// connection turns out to be lost.
func (s *Server) readLists(ctx context.Context) ([]*entryList, error) {
	for again := true; ; again = false {
		conn, err := s.shared.get(ctx, true)
		if err != nil {
			return nil, err
		}
		s.changes.reading()
		lists, err := s.readAll(ctx, conn)
		if err == nil || !again || conn.alive() || ctx.Err() != nil {
			return lists, err
		}
	}
}

// readAll reads each list. Without its tools a server is not there; another
// list that cannot be read stays as it was, and is read again soon.
func (s *Server) readAll(ctx context.Context, conn *connection) ([]*entryList, error) {
	var lists []*entryList
	for _, l := range listings() {
		if l.kind != tools.KindTool && !declares(conn.client.Server(), l.capability) {
			delete(s.known, l.kind)
			continue
		}
		list, err := readPages(ctx, conn.client, l)
		switch {
		case err == nil:
			s.known[l.kind] = list
		case l.kind == tools.KindTool || ctx.Err() != nil || !conn.alive():
			return nil, err
		default:
			list = s.unread(l, err)
		}
		lists = append(lists, list)
	}
	return lists, nil
}

// unread returns the list as it was read last.
func (s *Server) unread(l listing, err error) *entryList {
	s.log.Warn("a list of the MCP server could not be read", "list", l.method, "error", s.secrets.clean(err.Error()))
	list := &entryList{listing: l, ttl: relistPause}
	if last := s.known[l.kind]; last != nil {
		list.entries = last.entries
	}
	var rpc *RPCError
	if errors.As(err, &rpc) {
		list.ttl = 0 // the server has said its word
	}
	list.cut = errors.New(bound(s.secrets.clean(reasonOf(err)), 200))
	return list
}

// readPages follows the pages of a list to the end, or to where they go round
// in a circle.
func readPages(ctx context.Context, c *mcpwire.Client, l listing) (*entryList, error) {
	list := &entryList{listing: l}
	cursors := map[string]bool{}
	var params json.RawMessage
	for page := 1; ; page++ {
		next, err := list.readPage(ctx, c, params)
		switch {
		case err != nil:
			return nil, err
		case next == "" || list.cut != nil:
			return list, nil
		case cursors[next]:
			list.cut = fmt.Errorf("page %d names a cursor that was followed before", page)
		case page >= maxPages:
			list.cut = fmt.Errorf("the list has more than %d pages", maxPages)
		}
		if list.cut != nil {
			return list, nil
		}
		cursors[next] = true
		params = append(rawjson.AppendQuoted([]byte(`{"cursor":`), next), '}')
	}
}

// readPage adds one page and returns the cursor of the next.
func (l *entryList) readPage(ctx context.Context, c *mcpwire.Client, params json.RawMessage) (next string, err error) {
	ctx, cancel := context.WithTimeout(ctx, pageWait)
	defer cancel()
	raw, err := c.Call(ctx, l.method, params, nil)
	if err != nil {
		return "", l.forgive(c, err)
	}
	page, entries, next := l.scanPage(raw)
	if rawjson.KindOf(page) != rawjson.KindArray {
		return "", fmt.Errorf("the answer to %s has no array %q", l.method, l.member)
	}
	if len(l.entries) > 0 && bytes.Equal(page, l.page) {
		l.cut = errors.New("a page is the same as the one before")
		return "", nil
	}
	l.page = page
	if room := maxEntries - len(l.entries); len(entries) > room {
		l.entries = append(l.entries, entries[:room]...)
		l.cut = fmt.Errorf("the list has more than %d entries; the first %d are taken", maxEntries, maxEntries)
		return "", nil
	}
	l.entries = append(l.entries, entries...)
	return next, nil
}

// scanPage goes over a page once. It returns the array, its elements, and the
// cursor of the next page.
func (l *entryList) scanPage(raw json.RawMessage) (page json.RawMessage, entries []json.RawMessage, next string) {
	it := rawjson.Object(raw)
	for it.Step() {
		isPage := it.KeyIs(l.member)
		if each := it.Elements(); isPage && each.Err() == nil {
			entries = entries[:0]
			for each.Next() {
				entries = append(entries, each.Value())
			}
			if each.Err() != nil {
				return nil, nil, ""
			}
			it.Take(&each)
		} else if !it.Skip() {
			break
		}
		switch {
		case isPage:
			page = it.Value()
		case it.KeyIs("nextCursor"):
			next, _ = rawjson.Unquote(it.Value())
		case it.KeyIs("ttlMs"):
			l.addTTL(it.Value())
		}
	}
	return page, entries, next
}

// forgive takes it for an empty list that a server does not know the method:
// one that declares no tools, or that means its other lists by resources.
func (l *entryList) forgive(c *mcpwire.Client, err error) error {
	unknown := errors.Is(err, &RPCError{Code: mcpwire.CodeMethodNotFound})
	if unknown && (l.kind != tools.KindTool || !declares(c.Server(), l.capability)) {
		return nil
	}
	return err
}

// addTTL keeps the shortest time to live of the pages.
func (l *entryList) addTTL(raw json.RawMessage) {
	var ms float64
	if json.Unmarshal(raw, &ms) != nil || ms <= 0 || ms > float64(24*time.Hour/time.Millisecond) {
		return
	}
	if ttl := time.Duration(ms * float64(time.Millisecond)); l.ttl == 0 || ttl < l.ttl {
		l.ttl = ttl
	}
}
