// Package oauth holds tests of the program before MCP servers that want tokens.
package oauth

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/toolcrib/toolcrib/internal/oauthtest"
	"github.com/toolcrib/toolcrib/internal/peertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type note struct {
	Text string `json:"text"`
}

// newWorld is an MCP server of the Go SDK behind OAuth.
func newWorld(t *testing.T) *oauthtest.World {
	t.Helper()
	w := oauthtest.New(t)
	server := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "echo", Description: "Say it again."}, func(_ context.Context, _ *mcp.CallToolRequest, in note) (*mcp.CallToolResult, note, error) {
		return nil, in, nil
	})
	w.Handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	return w
}

// serve starts the program with a configuration, and returns it with its address.
func serve(t *testing.T, config string, env ...string) (*peertest.Process, string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "toolcrib.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(peertest.Build(t, "./cmd/toolcrib"), "serve", "-c", file, "--listen", "127.0.0.1:0", "--data", filepath.Join(dir, "state"))
	cmd.Env = append(os.Environ(), env...)
	p := peertest.Start(t, cmd)
	return p, p.Line(t, `^listening on (http://\S+)`)[1]
}

// What a client does that is sent to a page.
const (
	cannot   = "" // be asked
	browses  = "accept"
	declines = "decline"
)

// connect returns a session of an MCP client.
func connect(t *testing.T, url, action string) *mcp.ClientSession {
	t.Helper()
	opts := &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}}
	if action != cannot {
		opts.Capabilities.Elicitation = &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}
		opts.ElicitationHandler = func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			if r.Params.Mode != "url" || !strings.Contains(r.Params.Message, "notes") {
				t.Errorf("asked %+v", r.Params)
			}
			if action == browses {
				go func() { open(t, r.Params.URL) }()
			}
			return &mcp.ElicitResult{Action: action}, nil
		}
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, opts)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url + "/mcp", HTTPClient: &http.Client{Transport: &http.Transport{}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// open is a person's browser.
func open(t *testing.T, url string) {
	t.Helper()
	jar, _ := cookiejar.New(nil)
	resp, err := (&http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}).Get(url)
	if err != nil {
		t.Error(err)
		return
	}
	defer resp.Body.Close()
	if page, _ := io.ReadAll(resp.Body); resp.StatusCode != 200 || !strings.Contains(string(page), "Authorized") {
		t.Errorf("the browser came to %d %s", resp.StatusCode, page)
	}
}

// call calls the tool and returns its text and whether it failed.
func call(t *testing.T, s *mcp.ClientSession) (text string, failed bool) {
	t.Helper()
	r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "notes_echo", Arguments: note{"hello"}})
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := json.Marshal(r)
	return string(raw), r.IsError
}

func works(t *testing.T, s *mcp.ClientSession) {
	t.Helper()
	if text, failed := call(t, s); failed || !strings.Contains(text, "hello") {
		t.Fatalf("the call gave %s", text)
	}
}

// shows fails the test when the program printed something of a token.
func shows(t *testing.T, p *peertest.Process) {
	t.Helper()
	if hit := regexp.MustCompile(`(access|refresh)-[A-Z0-9]{8}|top-secret`).FindString(p.Output()); hit != "" {
		t.Errorf("the program shows %s:\n%s", hit, p.Output())
	}
}

func TestAClientOfItsOwn(t *testing.T) {
	w := newWorld(t)
	w.Listed = []string{"notes"}
	p, url := serve(t, fmt.Sprintf(`
tools:
  mcp_servers:
    - {name: notes, url: %s/mcp, oauth: {provider: notes}}
  oauth_providers:
    - {name: notes, grant: client_credentials, client_id_env: NOTES_ID, client_secret_env: NOTES_SECRET, issuer: %s}
`, w.Service.URL, w.Server.URL), "NOTES_ID=me", "NOTES_SECRET=top-secret")
	works(t, connect(t, url, cannot))
	works(t, connect(t, url, cannot))
	if n := w.Count("client_credentials"); n != 1 {
		t.Errorf("%d token requests", n)
	}
	w.Expire()
	works(t, connect(t, url, cannot))
	if got := w.Requests[1]; len(w.Requests) != 2 || got.Get("scope") != "notes" || got.Get("resource") != w.Service.URL+"/mcp" {
		t.Errorf("the requests were %v", w.Requests)
	}
	shows(t, p)
}

func TestAPersonAgrees(t *testing.T) {
	w := newWorld(t)
	w.Demands = []string{"read"}
	p, url := serve(t, fmt.Sprintf(`
tools:
  mcp_servers:
    - {name: notes, url: %s/mcp, oauth: {binding_scope: user}}
`, w.Service.URL))
	link := p.Line(t, `waits for authorization in a browser.* open=(http://\S+)`)[1]
	changed := make(chan struct{}, 8)
	watcher := mcp.NewClient(&mcp.Implementation{Name: "watcher", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
	})
	watching, err := watcher.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url + "/mcp", HTTPClient: &http.Client{Transport: &http.Transport{}}},
		&mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = watching.Close() })
	if got := sourceOf(t, url); got.AuthorizationURL != link || got.State != "down" {
		t.Errorf("the source is %+v, the log says %s", got, link)
	}
	open(t, link)
	<-changed
	list, err := watching.ListTools(t.Context(), nil)
	if err != nil || !slices.ContainsFunc(list.Tools, func(tool *mcp.Tool) bool { return tool.Name == "notes_echo" }) {
		t.Fatalf("the list is %+v, %v", list, err)
	}
	plain, browsing, declining := connect(t, url, cannot), connect(t, url, browses), connect(t, url, declines)
	works(t, plain)

	w.Demand("read", "write")
	if text, failed := call(t, declining); !failed || !strings.Contains(text, `"authorization_required"`) {
		t.Errorf("the call that was declined gave %s", text)
	}
	text, failed := call(t, plain)
	link = regexp.MustCompile(`http://127[^\s"]+/oauth/authorize/\w+`).FindString(text)
	if !failed || link == "" || !strings.Contains(text, `"authorization_required"`) {
		t.Fatalf("the call gave %s", text)
	}
	open(t, link)
	works(t, plain)

	w.Demand("read", "write", "delete")
	works(t, browsing)
	if got := w.Asked[2].Get("scope"); got != "read write delete" {
		t.Errorf("asked for %q", got)
	}
	shows(t, p)
}

type source struct {
	State            string `json:"state"`
	AuthorizationURL string `json:"authorization_url"`
}

func sourceOf(t *testing.T, url string) source {
	t.Helper()
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Post(url+"/v1/sources/list", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var body struct{ Sources []source }
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil || len(body.Sources) != 1 {
		t.Fatalf("%+v %v", body, err)
	}
	return body.Sources[0]
}
