package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/identity"
)

// A client and a server in the same process give the same answers.
func TestClientAnswersAsTheServerDoes(t *testing.T) {
	client := clientOf(t, as(t, api.Options{}).URL)
	local := api.New(newCatalog(t), nil)
	ctx := identity.With(t.Context(), identity.Identity{TenantID: "acme", UserID: "ann", SessionID: "s"})

	list := api.ListRequest{Filter: api.ListFilter{Transports: []string{"mcp"}, Search: "text"}, PageSize: 3}
	same(t, func() (any, error) { return client.List(ctx, list) }, func() (any, error) { return local.List(ctx, list) })
	same(t, func() (any, error) { return client.Get(ctx, "echo") }, func() (any, error) { return local.Get(ctx, "echo") })
	same(t, func() (any, error) { return client.Describe(ctx, "echo") }, func() (any, error) { return local.Describe(ctx, "echo") })
	same(t, func() (any, error) { return client.Sources(ctx) }, func() (any, error) { return local.Sources(ctx) })
	same(t, func() (any, error) { return client.Describe(ctx, "secret") }, func() (any, error) { return local.Describe(ctx, "secret") })
	for _, name := range []string{"files.big", "files.text", "fails", "nosuch", "chatty"} {
		req := api.CallRequest{Name: name}
		same(t, func() (any, error) { return steady(client.Call(ctx, req)) }, func() (any, error) { return steady(local.Call(ctx, req)) })
	}
}

// steady removes what differs between two calls.
func steady(resp *api.CallResponse, err error) (*api.CallResponse, error) {
	if resp != nil {
		resp.CallID, resp.ElapsedMS = "", 0
	}
	return resp, err
}

func same(t *testing.T, remote, local func() (any, error)) {
	t.Helper()
	got, gotErr := remote()
	want, wantErr := local()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the client's answer differs (-local +client):\n%s", diff)
	}
	if diff := cmp.Diff(wantErr, gotErr); diff != "" {
		t.Errorf("the client's error differs (-local +client):\n%s", diff)
	}
}

func TestClientHearsNotes(t *testing.T) {
	client := clientOf(t, as(t, api.Options{}).URL)
	var notes []api.Note
	hear := func(n api.Note) { notes = append(notes, n) }

	resp, err := client.Call(t.Context(), api.CallRequest{Name: "chatty", Notes: hear})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(resp.Structured), "{\n\"done\": true\n}"; got != want {
		t.Errorf("got %q, want the bytes of the tool, %q", got, want)
	}
	want := []api.Note{
		{Kind: api.NoteProgress, Progress: 1, Total: 2, Message: "half\nway"},
		{Kind: api.NoteLog, Level: "info", Logger: "chatty", Data: json.RawMessage(`{"rows":3}`)},
	}
	if diff := cmp.Diff(want, notes); diff != "" {
		t.Error(diff)
	}

	_, err = client.Call(t.Context(), api.CallRequest{Name: "chatty", Arguments: json.RawMessage(`{"Fail":true}`), Notes: hear})
	wantCode(t, err, api.CodeToolFailed)
}

func wantCode(t *testing.T, err error, code api.Code) *api.Error {
	t.Helper()
	failed, ok := errors.AsType[*api.Error](err)
	if !ok || failed.Code != code {
		t.Fatalf("got %#v, want the code %s", err, code)
	}
	return failed
}

// A body beyond the bound is refused with an answer that the client hears,
// whether or not its length was announced.
func TestTooLarge(t *testing.T) {
	server := as(t, api.Options{MaxBodyBytes: 2 << 20})
	client := clientOf(t, server.URL)
	args := json.RawMessage(`{"text":"` + strings.Repeat("x", 3<<20) + `"}`)
	_, err := client.Call(t.Context(), api.CallRequest{Name: "echo", Arguments: args})
	wantCode(t, err, api.CodeTooLarge)

	unannounced := struct{ *bytes.Reader }{bytes.NewReader(args)}
	rec := httptest.NewRecorder()
	req := httptest.NewRequest(http.MethodPost, "/v1/tools/call", unannounced)
	req.Header.Set("Content-Type", "application/json")
	req.ContentLength = -1
	api.New(newCatalog(t), &api.Options{MaxBodyBytes: 1 << 20}).ServeHTTP(rec, req)
	if rec.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("got status %d, want 413", rec.Code)
	}
}

func TestClientSaysWhatIsWrongWithTheServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + listener.Addr().String()
	listener.Close()

	for _, c := range []struct {
		name, url, want string
	}{
		{"nothing listens", closed, "nothing listens at " + closed + ": connection refused"},
		{"not this protocol", answering(t, 404, "text/html", "<h1>no</h1>"), `the server answered "404 Not Found", which is not an answer of a Toolcrib server`},
		{"an answer of something else", answering(t, 200, "text/html", "<h1>hi</h1>"), "the server's answer is not that of a Toolcrib server"},
		{"a stream that breaks off", answering(t, 200, "text/event-stream", "event: progress\ndata: {}\n\n"), "the connection ended before the answer was complete"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := clientOf(t, c.url).Call(t.Context(), api.CallRequest{Name: "echo", Notes: func(api.Note) {}})
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func answering(t *testing.T, status int, kind, body string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestClientWantsAURL(t *testing.T) {
	for _, base := range []string{"", "127.0.0.1:7711", "ftp://host", "http://", "http://[::1"} {
		if _, err := api.NewClient(base, nil); err == nil {
			t.Errorf("%q was taken for the URL of a server", base)
		}
	}
}

// A caller that goes away ends the call, and is told what it did itself.
func TestClientGivesUp(t *testing.T) {
	client := clientOf(t, as(t, api.Options{}).URL)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := client.Call(ctx, api.CallRequest{Name: "echo"})
	wantCode(t, err, api.CodeCanceled)

	ctx, cancel = context.WithTimeout(t.Context(), 0)
	defer cancel()
	_, err = client.Call(ctx, api.CallRequest{Name: "echo"})
	if failed := wantCode(t, err, api.CodeTimeout); !failed.OutcomeUnknown {
		t.Error("a call that was given up may have had its effect")
	}
}

func TestSecretsOfTheServersURLAreNotShown(t *testing.T) {
	c, err := api.NewClient("http://user:CANARY@127.0.0.1:1/?k=CANARY", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.List(t.Context(), api.ListRequest{}); err == nil || strings.Contains(err.Error(), "CANARY") || !strings.Contains(err.Error(), "http://127.0.0.1:1") {
		t.Errorf("%v", err)
	}
	for _, bad := range []string{"user:CANARY@host?x=CANARY", "ftp://u:CANARY@h/?CANARY", "http://%zz:CANARY@h"} {
		if _, err := api.NewClient(bad, nil); err == nil || strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%v", err)
		}
	}
}
