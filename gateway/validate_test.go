package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolcrib/toolcrib/gateway"
)

const petsDocument = `
openapi: 3.0.3
info: {title: Pets, version: "1"}
servers: [{url: SERVER}]
paths:
  /pets:
    get: {operationId: listPets, responses: {"200": {description: ok}}}
    post: {operationId: createPet, responses: {"201": {description: ok}}}
`

const notesManifest = `
tools:
  - {name: notes.add, method: POST, url_template: "https://notes.example.com/notes", description: Add a note.}
`

// examine checks a configuration in a folder that holds a document and a
// manifest, and returns the lines of its warnings and faults.
func examine(t *testing.T, server, text string) (warnings, faults string) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"c.yaml": text, "pets.yaml": strings.Replace(petsDocument, "SERVER", server, 1), "notes.yaml": notesManifest,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	cfg, err := gateway.Load("c.yaml")
	if err != nil {
		t.Fatal(err)
	}
	list, err := cfg.Examine()
	if err != nil {
		faults = err.Error()
	}
	return list.Error(), faults
}

// public is a server that may be called.
const public = "https://pets.example.com"

// examined is a configuration, and what is found in it.
type examined struct{ server, text, warnings, faults string }

func (c examined) check(t *testing.T) {
	warnings, faults := examine(t, c.server, c.text)
	if diff := cmp.Diff([]string{c.warnings, c.faults}, []string{warnings, faults}); diff != "" {
		t.Error(diff)
	}
}

func TestExamine(t *testing.T) {
	for name, c := range map[string]examined{
		"fine": {public, `
tools:
  built_in: [text.echo]
  openapi: [{name: pets, document: pets.yaml, include: ["list*", "POST *"]}]
  http_manifests: [{file: notes.yaml}]
  mcp_servers: [{name: s, command: [sh]}]
  entries: [{name: pets_listPets}, {name: notes.add}, {name: text.echo}, {name: s_anything}]
`, "", ""},
		"an operation that is not there": {public, `
tools:
  openapi: [{name: pets, document: pets.yaml}]
  entries:
    - name: pets_listPet
`, "", `c.yaml:5:13: tools.entries[0].name: "pets_listPet" is not a tool of the source pets; expected pets_listPets`},
		"any source could bring it": {public, `
tools:
  openapi: [{name: pets, document: pets.yaml}]
  mcp_servers: [{name: s, command: [sh], prefix: none}]
  entries:
    - name: pets_listPet
`, "", ""},
		"nobody brings it": {public, `
tools:
  built_in: [text.echo]
  http_manifests: [{file: notes.yaml}]
  entries:
    - name: notes.ad
    - name: clock.now
    - name: s_x
`, `c.yaml:6:13: tools.entries[0].name: no source has a tool "notes.ad"; expected notes.add
c.yaml:7:13: tools.entries[1].name: "clock.now" is a built-in tool that is not offered; expected it in tools.built_in
c.yaml:8:13: tools.entries[2].name: no source has a tool "s_x"`, ""},
		"a pattern that matches nothing": {public, `
tools:
  openapi:
    - {name: pets, document: pets.yaml, include: [listPets, "delete*"]}
`, `c.yaml:4:7: tools.openapi[0]: include "delete*" matches nothing`, ""},
		"a server of this machine": {"http://127.0.0.1:8080", `
tools:
  openapi:
    - {name: pets, document: pets.yaml}
  entries: [{name: pets_listPets}]
`, "", `c.yaml:4:7: tools.openapi[0]: server http://127.0.0.1:8080: the host 127.0.0.1 is loopback: set allow_private to call it; expected allow_private: true, if that is meant`},
		"a server of this machine that is meant": {"http://127.0.0.1:8080", `
tools:
  openapi: [{name: pets, document: pets.yaml, allow_private: true}]
`, "", ""},
		"a tool of an agent": {public, `
tools:
  a2a_peers: [{name: travel, url: "https://travel.example.com"}]
  entries: [{name: travel_book}, {name: trave_book}]
`, `c.yaml:4:41: tools.entries[1].name: no source has a tool "trave_book"`, ""},
		"programs": {public, `
tools:
  mcp_servers:
    - {name: a, command: [no-such-program-here, x]}
    - {name: b, command: [./not-there]}
`, `c.yaml:4:27: tools.mcp_servers[0].command[0]: "no-such-program-here" is not found in PATH
c.yaml:5:27: tools.mcp_servers[1].command[0]: "./not-there" is not a program on this machine`, ""},
	} {
		t.Run(name, c.check)
	}
}

func TestExamineWorkers(t *testing.T) {
	for name, c := range map[string]examined{
		"nobody reaches them": {public, `
workers:
  listen: 127.0.0.1:7713
`, `c.yaml:3:3: workers: has no effect, as it says of no stream server; expected enabled: true or url beside it`, ""},
		"a tool of any of them": {public, `
workers: {enabled: true, listen: none, toolsets: [{name: post}, {name: shop, prefix: shop_}]}
tools: {entries: [{name: post_send}]}
`, "", ""},
		"a tool of those with a prefix": {public, `
workers: {enabled: true, listen: none, toolsets: [{name: shop, prefix: shop_}]}
tools: {entries: [{name: shop_buy}, {name: post_send}]}
toolsets: [{name: desk, include: [shop_buy, shopping]}]
`, `c.yaml:3:44: tools.entries[1].name: no source has a tool "post_send"
c.yaml:4:45: toolsets[0].include[1]: no tool matches "shopping"`, ""},
		"they are switched off": {public, `
workers: {enabled: false, listen: "127.0.0.1:7713"}
`, "", ""},
	} {
		t.Run(name, c.check)
	}
}

// What names tools that are not there is shown while the gateway serves.
func TestUnmatchedIsShown(t *testing.T) {
	book := &logbook{}
	kid := strings.TrimSuffix(child("kid"), "}") + `, include: [echo, "list_*"], tool_policies: {echo: {max_attempts: 1}, ecko: {max_attempts: 1}}}`
	g := open(t, parse(t, "tools: {mcp_servers: ["+kid+", {name: gone, command: [./not-there]}], entries: [{name: kid_echo}, {name: kid_ecko}, {name: gone_x}]}"),
		&gateway.Options{Logger: book.logger()})
	want := []string{`include "list_*"`, `tool_policies "ecko"`}
	if diff := cmp.Diff(want, g.Sources()[0].Unmatched); diff != "" {
		t.Error(diff)
	}
	for path, part := range map[string]string{
		"GET /readyz":           `"unmatched":["include \"list_*\"","tool_policies \"ecko\""]}`,
		"POST /v1/sources/list": `"unmatched":["include \"list_*\"","tool_policies \"ecko\""]}`,
	} {
		method, url, _ := strings.Cut(path, " ")
		w := httptest.NewRecorder()
		g.Handler().ServeHTTP(w, httptest.NewRequest(method, "http://localhost"+url, http.NoBody))
		if got := w.Body.String(); !strings.Contains(got, part) || !strings.Contains(got, `"unmatched_entries":["kid_ecko"]`) {
			t.Errorf("%s: %s", path, got)
		}
	}
	if !strings.Contains(book.String(), "tool_policies") {
		t.Errorf("the log does not name the keys:\n%s", book)
	}
}
