package httptool_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/httptool"
)

var (
	_ tools.ToolProvider = (*httptool.OpenAPI)(nil)
	_ tools.Refuser      = (*httptool.OpenAPI)(nil)
	_ tools.ToolProvider = (*httptool.Manifest)(nil)
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// seen is a request as it arrived.
type seen struct {
	Method, URI, Body string
	Header            http.Header
}

// serve starts a server that answers with h and keeps what arrived.
func serve(t *testing.T, h http.HandlerFunc) (*httptest.Server, func() seen) {
	t.Helper()
	requests := make(chan seen, 100)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		requests <- seen{r.Method, r.RequestURI, string(body), r.Header.Clone()}
		h(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv, func() seen {
		select {
		case s := <-requests:
			return s
		default:
			t.Error("no request arrived")
			return seen{Header: http.Header{}}
		}
	}
}

func answerJSON(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"id":9007199254740993,"ok":true}`)
}

// attach puts a source's tools into a catalog.
func attach(t *testing.T, p tools.ToolProvider) tools.LiveCatalog {
	t.Helper()
	cat := tools.NewCatalog().(tools.LiveCatalog)
	ctx := context.Background()
	if err := p.Connect(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close(ctx) })
	list, err := p.Discover(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range cat.SwapSource(p.SourceID(), list).Refused {
		t.Errorf("%s was refused: %v", r.Name, r.Err)
	}
	return cat
}

func openAPI(t *testing.T, cfg httptool.OpenAPIConfig) *httptool.OpenAPI {
	t.Helper()
	cfg.Network.AllowPrivate = true
	if cfg.Name == "" {
		cfg.Name = "api"
	}
	s, err := httptool.NewOpenAPI(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// document wraps paths into an OpenAPI document.
func document(version, rest string) []byte {
	return []byte(`{"openapi":"` + version + `","info":{"title":"t","version":"1"},` + rest + `}`)
}

// caller is a context that holds the scope which a tool of the tests demands.
func caller() context.Context {
	return identity.With(context.Background(), identity.Identity{TenantID: "t", UserID: "u", SessionID: "s"}, "users:write")
}

func call(t *testing.T, cat tools.ToolCatalog, name, args string) tools.ToolResult {
	t.Helper()
	res, err := tools.Invoke(caller(), cat, name, json.RawMessage(args))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return res
}

func callError(t *testing.T, cat tools.ToolCatalog, name, args string) *tools.Error {
	t.Helper()
	_, err := tools.Invoke(caller(), cat, name, json.RawMessage(args))
	var e *tools.Error
	if !errors.As(err, &e) {
		t.Fatalf("%s: got %v, want a *tools.Error", name, err)
	}
	return e
}

func mustContain(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q does not contain %q", text, p)
		}
	}
}
