package demo_test

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/toolcrib/toolcrib/gateway"
	"github.com/toolcrib/toolcrib/gateway/demo"
	"github.com/toolcrib/toolcrib/tools"
)

// The test binary is the MCP server too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == demo.Command {
		if err := demo.ServeMCP(context.Background(), os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func start(t *testing.T) *gateway.Gateway {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	d, err := demo.Start(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.Open(ctx, d.Config(), &gateway.Options{Register: d.Register()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, close := range []func(context.Context) error{g.Close, d.Close, d.Close} {
			if err := close(ctx); err != nil {
				t.Errorf("close: %v", err)
			}
		}
	})
	if err := g.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	return g
}

func TestEveryTransportAnswers(t *testing.T) {
	g := start(t)
	ctx := g.LocalContext(t.Context())
	want := []string{"artifact_fetch", "clock.now", "library_add_book", "library_find_books", "library_get_book", "library_lend_book", "library_return_book",
		"notes_add", "notes_countdown", "notes_list", "text.echo", "tool_call", "tool_get", "tool_search", "units.convert"}
	if diff := cmp.Diff(want, tools.VisibleNames(g.Catalog(), tools.FilterFrom(ctx))); diff != "" {
		t.Fatalf("%s\n%+v", diff, g.Sources())
	}
	for _, c := range []struct{ tool, args, want string }{
		{"units.convert", `{"value":100,"from":"C","to":"F"}`, `{"value":212,"unit":"F"}`},
		{"units.convert", `{"value":5,"from":"km","to":"m"}`, `{"value":5000,"unit":"m"}`},
		{"library_find_books", `{"query":"lem"}`, `{"books":[{"id":2,"title":"Solaris","author":"Stanisław Lem","year":1961}]}`},
		{"library_add_book", `{"body":{"title":"Momo","author":"Michael Ende"}}`, `{"id":5,"title":"Momo","author":"Michael Ende"}`},
		{"library_lend_book", `{"id":2,"body":{"borrower":"Ada"}}`, `{"id":2,"title":"Solaris","author":"Stanisław Lem","year":1961,"borrower":"Ada"}`},
		{"library_find_books", `{"query":"solaris","available":true}`, `{"books":[]}`},
		{"library_return_book", `{"id":2}`, `{"id":2,"title":"Solaris","author":"Stanisław Lem","year":1961}`},
		{"library_get_book", `{"id":3}`, `{"id":3,"title":"Kindred","author":"Octavia E. Butler","year":1979}`},
		{"notes_add", `{"text":"buy milk","tags":["home"]}`, `{"id":1,"text":"buy milk","tags":["home"]}`},
		{"notes_list", `{"tag":"work"}`, `{"notes":[]}`},
		{"notes_list", `{}`, `{"notes":[{"id":1,"text":"buy milk","tags":["home"]}]}`},
		{"notes_countdown", `{"from":3}`, `{"counted":3}`},
	} {
		res, err := tools.Invoke(ctx, g.Catalog(), c.tool, json.RawMessage(c.args))
		if err != nil {
			t.Errorf("%s %s: %v", c.tool, c.args, err)
			continue
		}
		if out, _ := res.JSON(); strings.TrimSpace(string(out)) != c.want {
			t.Errorf("%s %s = %s, want %s", c.tool, c.args, out, c.want)
		}
	}
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	g := start(t)
	ctx := g.LocalContext(t.Context())
	for _, c := range []struct{ tool, args, want string }{
		{"units.convert", `{"value":1,"from":"C","to":"kg"}`, "C measures temperature and kg measures mass"},
		{"units.convert", `{"value":1,"from":"parsec","to":"m"}`, "expected one of"},
		{"library_get_book", `{"id":99}`, "no such book"},
		{"library_get_book", `{"id":0}`, "id"},
		{"notes_countdown", `{"from":1000}`, "from is 1 to 100"},
	} {
		res, err := tools.Invoke(ctx, g.Catalog(), c.tool, json.RawMessage(c.args))
		if err == nil && !res.IsError {
			t.Errorf("%s %s succeeded", c.tool, c.args)
			continue
		}
		said := res.Text()
		if err != nil {
			said = err.Error()
		}
		if !strings.Contains(said, c.want) {
			t.Errorf("%s %s: %s, want %q", c.tool, c.args, said, c.want)
		}
	}
}

func TestSourcesAreOfThreeKinds(t *testing.T) {
	g := start(t)
	kinds := map[tools.TransportKind]bool{}
	for _, tool := range g.Catalog().List(tools.FilterFrom(g.LocalContext(t.Context()))) {
		kinds[tool.Transport] = true
	}
	for _, kind := range []tools.TransportKind{tools.TransportInProcess, tools.TransportHTTP, tools.TransportMCP} {
		if !kinds[kind] {
			t.Errorf("no tool of transport %s", kind)
		}
	}
	for _, s := range g.Sources() {
		if s.State != gateway.SourceReady || slices.ContainsFunc(s.Refused, func(gateway.Refused) bool { return true }) {
			t.Errorf("%+v", s)
		}
	}
}
