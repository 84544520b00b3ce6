package mcptool

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"gocloud.dev/blob/memblob"

	"github.com/toolcrib/toolcrib/artifacts"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/store/sqlstore"
	"github.com/toolcrib/toolcrib/tools"
)

// keeper returns a store of artifacts, and the context of somebody who has one.
func keeper(t *testing.T, opts *artifacts.Options) (*artifacts.Store, context.Context) {
	t.Helper()
	records, err := sqlstore.OpenMemory(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	bucket := memblob.OpenBucket(nil)
	t.Cleanup(func() { _ = errors.Join(bucket.Close(), records.Close()) })
	return artifacts.New(bucket, records, opts), identity.With(t.Context(), identity.Identity{TenantID: "t", UserID: "u", SessionID: "s"})
}

// content reads what is kept.
func content(t *testing.T, store *artifacts.Store, ctx context.Context, ref string) string {
	t.Helper()
	r, err := store.Open(ctx, ref, artifacts.Section{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

// nothingKept fails the test if the caller keeps something, or the disk does.
func nothingKept(t *testing.T, store *artifacts.Store, ctx context.Context, scratch string) {
	t.Helper()
	if list, _, err := store.List(ctx, artifacts.Listing{}); err != nil || len(list) != 0 {
		t.Errorf("something was kept: %+v, %v", list, err)
	}
	if left, err := os.ReadDir(scratch); err != nil || len(left) != 0 {
		t.Errorf("left on the disk: %v, %v", left, err)
	}
}

// streamed answers every request on a stream of events.
type streamed struct{ *rawEndpoint }

func (e streamed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	plain := httptest.NewRecorder()
	e.rawEndpoint.ServeHTTP(plain, r)
	for k, v := range plain.Header() {
		w.Header()[k] = v
	}
	if plain.Code != http.StatusOK {
		w.WriteHeader(plain.Code)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, ": hello\n\nid: 1\ndata: "+plain.Body.String()+"\n\n")
}

// longWays are the ways to reach a server that says what it is told to.
func longWays(t *testing.T) map[string]*Config {
	t.Helper()
	ways := map[string]*Config{"stdio": childConfig(t, "long")}
	for name, h := range map[string]http.Handler{"http": newRawEndpoint(), "events": streamed{newRawEndpoint()}} {
		ts := httptest.NewServer(h)
		t.Cleanup(ts.Close)
		ways[name] = &Config{Name: "odd", URL: ts.URL, TransportMode: TransportStreamableHTTP}
	}
	for _, cfg := range ways {
		cfg.OffloadBytes, cfg.Scratch = 100<<10, NewScratch(&ScratchOptions{Dir: t.TempDir()})
	}
	return ways
}

// What is kept of a long result is what the server said, whatever its kind and
// whichever way it came, and what is not long is left as it was.
func TestLongResultsGoToTheCallersStore(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("a line of \"text\" é😀\n", 12_000)
	quoted, _ := json.Marshal(text)
	data := bytes.Repeat([]byte{0, 1, 2, 253, 254, 255}, 30_000)
	encoded := base64.StdEncoding.EncodeToString(data)
	doc := `{"rows":[` + strings.Repeat(`{"id": 9007199254740993, "name": "a row"}, `, 8_000) + `{}]}`
	pretty, _ := json.Marshal(strings.ReplaceAll(doc, ",", ",\n  "))
	type kept struct{ mime, name, content string }
	cases := map[string]struct {
		result string
		kept   []kept
		types  string
		left   string // the structured content
	}{
		"a text": {`{"content":[{"type":"text","text":` + string(quoted) + `}]}`, []kept{{"text/plain; charset=utf-8", "", text}}, "resource_link", ""},
		"among others": {`{"content":[{"type":"text","text":"before"},{"text":` + string(quoted) + `,"type":"text"},{"type":"text","text":"after"}],"structuredContent":{"n":9007199254740993}}`,
			[]kept{{"text/plain; charset=utf-8", "", text}}, "text resource_link text", `{"n":9007199254740993}`},
		"an image": {`{"content":[{"type":"image","data":"` + encoded + `","mimeType":"image/png"}]}`, []kept{{"image/png", "", string(data)}}, "resource_link", ""},
		"resources": {`{"content":[{"type":"resource","resource":{"uri":"file:///a/b.bin?x=1","blob":"` + encoded + `","mimeType":"application/x-b"}},` +
			`{"type":"resource","resource":{"uri":"u:t","text":` + string(quoted) + `}}]}`,
			[]kept{{"application/x-b", "b.bin", string(data)}, {"text/plain; charset=utf-8", "u:t", text}}, "resource_link resource_link", ""},
		"structured":  {`{"content":[{"type":"text","text":"short"}],"structuredContent":` + doc + `}`, []kept{{"application/json", "", doc}}, "text resource_link", ""},
		"twice":       {`{"structuredContent":` + doc + `,"content":[{"type":"text","text":` + string(pretty) + `}]}`, []kept{{"application/json", "", strings.ReplaceAll(doc, ",", ",\n  ")}}, "resource_link", ""},
		"no base64":   {`{"content":[{"type":"text","text":` + string(quoted) + `},{"type":"image","data":"` + encoded + `?","mimeType":"image/png"}]}`, nil, "resource_link", ""},
		"cut base64":  {`{"content":[{"type":"image","data":"` + encoded + `A"}]}`, nil, "resource_link", ""},
		"other list":  {`{"content":[{"type":"text","text":"short"}],"contents":[{"text":` + string(quoted) + `}]}`, nil, "resource_link", ""},
		"unknown":     {`{"content":[{"type":"hologram","text":` + string(quoted) + `}]}`, nil, "resource_link", ""},
		"many blocks": {`{"content":[` + strings.Repeat(`{"type":"text","text":"`+strings.Repeat("b", 500)+`"},`, 3000) + `{"type":"text","text":"end"}]}`, nil, "resource_link", ""},
	}
	for way, cfg := range longWays(t) {
		store, ctx := keeper(t, nil)
		cat := catalogOf(t, start(t, cfg))
		for name, c := range cases {
			res, err := tools.Invoke(tools.WithEntrance(ctx, tools.Entrance{Sink: store}), cat, "odd_say", json.RawMessage(`{"result":`+c.result+`}`))
			if err != nil {
				t.Errorf("%s, %s: %v", way, name, err)
				continue
			}
			var types []string
			for _, b := range res.Content {
				types = append(types, b.Type)
			}
			if got := strings.Join(types, " "); got != c.types || string(res.Structured) != c.left || res.Wire != nil {
				t.Errorf("%s, %s: blocks %q, structured %.100s, %d bytes as sent", way, name, got, res.Structured, len(res.Wire))
			}
			want := c.kept
			if want == nil {
				want = []kept{{"application/json", "result.json", c.result}}
			}
			if len(res.Artifacts) != len(want) {
				t.Errorf("%s, %s: %d artifacts, want %d", way, name, len(res.Artifacts), len(want))
				continue
			}
			for i, w := range want {
				info, err := store.Stat(ctx, res.Artifacts[i].Ref)
				if err != nil || info.MIME != w.mime || info.Name != w.name || info.Tool != "odd_say" || info.CallID != res.CallID {
					t.Errorf("%s, %s: %+v, %v", way, name, info, err)
				}
				if got := content(t, store, ctx, info.Ref); got != w.content {
					t.Errorf("%s, %s: kept are %d bytes, want %d", way, name, len(got), len(w.content))
				}
				if err := store.Delete(ctx, info.Ref); err != nil {
					t.Error(err)
				}
			}
			if list, _, err := store.List(ctx, artifacts.Listing{}); err != nil || len(list) != 0 {
				t.Errorf("%s, %s: something else is kept: %+v, %v", way, name, list, err)
			}
		}
	}
}

// Whoever takes whole results gets the bytes of the server, also while others do
// not.
func TestLongResultsStayWhole(t *testing.T) {
	t.Parallel()
	for way, cfg := range longWays(t) {
		store, ctx := keeper(t, nil)
		hold := &slowSink{Store: store, entered: make(chan struct{}), release: make(chan struct{})}
		cat := catalogOf(t, start(t, cfg))
		waiting := make(chan error, 1)
		go func() {
			_, err := tools.Invoke(tools.WithEntrance(ctx, tools.Entrance{Sink: hold}), cat, "odd_big", json.RawMessage(`{"n":300000}`))
			waiting <- err
		}()
		await(t, hold.entered) // and while a sink is slow, others are answered
		result := `{ "content":[{"type":"text","text":"` + strings.Repeat(`\u00e9`, 50_000) + `"}],"x":1.0}`
		res, err := tools.Invoke(ctx, cat, "odd_say", json.RawMessage(`{"result":`+result+`}`))
		if err != nil || string(res.Wire) != result || len(res.Artifacts) != 0 {
			t.Errorf("%s: %d bytes, %v", way, len(res.Wire), err)
		}
		close(hold.release)
		if err := await(t, waiting); err != nil {
			t.Errorf("%s: the call that waited: %v", way, err)
		}
	}
}

// slowSink waits before it takes anything in.
type slowSink struct {
	*artifacts.Store
	entered, release chan struct{}
}

func (s *slowSink) Offload(ctx context.Context, about tools.Offload, r io.Reader) (tools.ArtifactRef, error) {
	close(s.entered)
	select {
	case <-s.release:
		return s.Store.Offload(ctx, about, r)
	case <-ctx.Done():
		return tools.ArtifactRef{}, ctx.Err()
	}
}

func TestLongResultsThatFail(t *testing.T) {
	t.Parallel()
	two := `{"result":{"content":[{"type":"text","text":"` + strings.Repeat("a", 100_000) + `"},{"type":"text","text":"` + strings.Repeat("b", 300_000) + `"}]}}`
	for name, c := range map[string]struct {
		tool, args string
		scratch    ScratchOptions
		opts       artifacts.Options
		is         error
		says       string
		unknown    bool
	}{
		"no JSON at its end":           {tool: "garble", args: `{"n":300000}`, says: "not well-formed", unknown: true},
		"broken off":                   {tool: "cut", args: `{"n":300000}`, says: "connection closed", unknown: true},
		"more than an artifact may be": {tool: "say", args: two, opts: artifacts.Options{MaxBytes: 200_000}, is: artifacts.ErrTooLarge, says: "could not be kept: the content is larger"},
		"more than a message may be":   {tool: "big", args: `{"n":300000}`, scratch: ScratchOptions{MaxMessageBytes: 200_000}, says: "larger than 200000 bytes"},
		"more than all may be":         {tool: "big", args: `{"n":300000}`, scratch: ScratchOptions{MaxTotalBytes: 200_000}, says: "no room on the disk"},
		"a long error":                 {tool: "fail", args: `{"error":{"code":-32000,"message":"sorry","data":"` + strings.Repeat("d", 300_000) + `"}}`, says: "sorry"},
	} {
		store, ctx := keeper(t, &c.opts)
		cfg := childConfig(t, "long")
		c.scratch.Dir = t.TempDir()
		cfg.OffloadBytes, cfg.Scratch = 50_000, NewScratch(&c.scratch)
		cat := catalogOf(t, start(t, cfg))
		_, err := tools.Invoke(tools.WithEntrance(ctx, tools.Entrance{Sink: store}), cat, "odd_"+c.tool, json.RawMessage(c.args))
		var e *tools.Error
		if !errors.As(err, &e) || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) || e.Attempts != 1 || e.OutcomeUnknown != c.unknown {
			t.Errorf("%s: %+v", name, err)
		}
		nothingKept(t, store, ctx, c.scratch.Dir)
	}
}

func TestLongResultThatIsCancelled(t *testing.T) {
	t.Parallel()
	store, ctx := keeper(t, nil)
	dir := t.TempDir()
	cfg := childConfig(t, "long")
	cfg.OffloadBytes, cfg.Scratch = 50_000, NewScratch(&ScratchOptions{Dir: dir})
	cat := catalogOf(t, start(t, cfg))
	hold := &slowSink{Store: store, entered: make(chan struct{}), release: make(chan struct{})}
	cancelled, cancel := context.WithCancel(ctx)
	failed := make(chan error, 1)
	go func() {
		_, err := tools.Invoke(tools.WithEntrance(cancelled, tools.Entrance{Sink: hold}), cat, "odd_big", json.RawMessage(`{"n":300000}`))
		failed <- err
	}()
	await(t, hold.entered)
	cancel()
	if err := await(t, failed); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	eventually(t, func() bool { return cfg.Scratch.Used() == 0 })
	nothingKept(t, store, ctx, dir)
	if res, err := tools.Invoke(ctx, cat, "odd_say", json.RawMessage(`{"result":{}}`)); err != nil || string(res.Wire) != "{}" {
		t.Errorf("the next call: %+v, %v", res, err)
	}
}

// A legacy server answers on the one stream that all calls share, and resources
// have contents instead of blocks.
func TestLongResultsOfLegacyServersAndResources(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("long é ", 60_000)
	server := mcp.NewServer(&mcp.Implementation{Name: "long", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "big"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	})
	server.AddResource(&mcp.Resource{URI: "file:///log.txt", Name: "log"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "file:///log.txt", MIMEType: "text/x-log", Text: text}}}, nil
	})
	get := func(*http.Request) *mcp.Server { return server }
	for mode, h := range map[TransportMode]http.Handler{TransportSSE: mcp.NewSSEHandler(get, nil), TransportStreamableHTTP: mcp.NewStreamableHTTPHandler(get, nil)} {
		ts := httptest.NewServer(h)
		t.Cleanup(ts.Close)
		store, ctx := keeper(t, nil)
		cat := catalogOf(t, start(t, &Config{Name: "odd", URL: ts.URL, TransportMode: mode}))
		for tool, mime := range map[string]string{"odd_big": "text/plain; charset=utf-8", "odd_resource_log": "text/x-log"} {
			res, err := tools.Invoke(tools.WithEntrance(ctx, tools.Entrance{Sink: store}), cat, tool, nil)
			if err != nil || len(res.Artifacts) != 1 || res.Artifacts[0].MIME != mime || len(res.Content) != 1 {
				t.Errorf("%s, %s: %+v, %v", mode, tool, res.Artifacts, err)
				continue
			}
			if got := content(t, store, ctx, res.Artifacts[0].Ref); got != text {
				t.Errorf("%s, %s: kept are %d bytes, want %d", mode, tool, len(got), len(text))
			}
		}
	}
}

// censor redacts the texts of results.
type censor struct{}

func (censor) Redact(_ context.Context, _ *tools.Tool, res *tools.ToolResult) error {
	for i, c := range res.Content {
		if text, ok := c.Text(); ok {
			res.Content[i] = tools.TextContent(strings.ReplaceAll(text, "secret", "[redacted]"))
		}
	}
	res.Wire, res.Value = nil, nil
	return nil
}

// Where a redactor is, a long result passes it before anything is kept.
func TestLongResultsPassTheRedactor(t *testing.T) {
	t.Parallel()
	store, ctx := keeper(t, nil)
	cfg := childConfig(t, "long")
	dir := t.TempDir()
	cfg.OffloadBytes, cfg.Scratch = 50_000, NewScratch(&ScratchOptions{Dir: dir})
	s := start(t, cfg)
	cat := tools.NewCatalog(tools.WithStages(tools.Stages{Redactor: censor{}})).(tools.LiveCatalog)
	swap(t, cat, s)
	bounder := store.Bounder(nil)
	args := `{"result":{"content":[{"type":"text","text":"` + strings.Repeat("a secret ", 40_000) + `"}]}}`
	res, err := tools.Invoke(tools.WithEntrance(ctx, tools.Entrance{Sink: bounder}), cat, "odd_say", json.RawMessage(args))
	if err != nil || len(res.Artifacts) != 0 || strings.Contains(res.Text(), "secret") {
		t.Fatalf("%+v, %.100s, %v", res.Artifacts, res.Text(), err)
	}
	nothingKept(t, store, ctx, dir)
	small, err := bounder.Bound(ctx, &tools.Tool{Name: "odd_say"}, res)
	if err != nil || len(small.Artifacts) != 1 {
		t.Fatalf("%+v, %v", small, err)
	}
	if kept := content(t, store, ctx, small.Artifacts[0].Ref); strings.Contains(kept, "secret") || strings.Count(kept, "[redacted]") != 40_000 {
		t.Errorf("kept is %.100s", kept)
	}
}

// A body for which there is no room is not read to its end, where its id may be.
func TestLongBodiesThatFindNoRoom(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		scratch ScratchOptions
		says    string
	}{
		"one": {ScratchOptions{MaxMessageBytes: 200_000}, "larger than 200000 bytes"},
		"all": {ScratchOptions{MaxTotalBytes: 200_000}, "no room on the disk"},
	} {
		ts := httptest.NewServer(&rawEndpoint{raw: newRawServer("long", io.Discard)})
		t.Cleanup(ts.Close)
		store, ctx := keeper(t, nil)
		c.scratch.Dir = t.TempDir()
		cat := catalogOf(t, start(t, &Config{Name: "odd", URL: ts.URL, TransportMode: TransportStreamableHTTP, OffloadBytes: 50_000, Scratch: NewScratch(&c.scratch)}))
		_, err := tools.Invoke(tools.WithEntrance(ctx, tools.Entrance{Sink: store}), cat, "odd_big", json.RawMessage(`{"n":900000}`))
		var e *tools.Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), c.says) || e.Attempts != 1 || e.OutcomeUnknown {
			t.Errorf("%s: %+v", name, err)
		}
		nothingKept(t, store, ctx, c.scratch.Dir)
	}
}
