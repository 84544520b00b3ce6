package mcptool

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/toolcrib/toolcrib/tools"
)

func listOf(entries ...string) []*entryList {
	return []*entryList{listOfKind(tools.KindTool, entries...)}
}

func listOfKind(kind tools.Kind, entries ...string) *entryList {
	l := &entryList{}
	for _, known := range listings() {
		if known.kind == kind {
			l.listing = known
		}
	}
	for _, e := range entries {
		l.entries = append(l.entries, json.RawMessage(e))
	}
	return l
}

// plainServer is one that never connects.
func plainServer(t *testing.T) *Server {
	t.Helper()
	return start(t, &Config{Name: "odd", Command: []string{"not started"}})
}

func TestDefinitionsAreKeptWhole(t *testing.T) {
	t.Parallel()
	entry := `{"name":"get weather (sf)","x-new":{"n":9007199254740993},"inputSchema":{"properties":{"q":{}},"$k":1},
		"outputSchema":{"type":"object"},"description":"d","title":"T","execution":{"taskSupport":"optional"},
		"annotations":{"title":"U","readOnlyHint":true},"_meta":{"a":null}}`
	found, refused := plainServer(t).describeAll(listOf(entry))
	if len(found) != 1 || len(refused) != 0 {
		t.Fatalf("found %v, refused %v", found, refused)
	}
	got := found[0].Tool
	want := tools.Tool{
		Name: tools.CanonicalName("odd_", "get weather (sf)"), SourceName: "get weather (sf)", Title: "T", Description: "d",
		ArgsSchema: json.RawMessage(`{"properties":{"q":{}},"$k":1}`), OutSchema: json.RawMessage(`{"type":"object"}`),
		Source: "mcp:odd", Transport: tools.TransportMCP, Namespace: "odd", Safety: tools.Safety{ReadOnly: tools.Yes},
		Definition: json.RawMessage(entry),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if tools.CheckName(got.Name) != nil {
		t.Errorf("name %q", got.Name)
	}
}

func TestSchemasThatAreAbsent(t *testing.T) {
	t.Parallel()
	found, refused := plainServer(t).describeAll(listOf(`{"name":"a"}`, `{"name":"b","inputSchema":null,"outputSchema":null,"title":7}`))
	if len(found) != 2 || len(refused) != 0 {
		t.Fatalf("refused %v", refused)
	}
	for _, d := range found {
		if d.Tool.ArgsSchema != nil || d.Tool.OutSchema != nil || d.Tool.Title != "" {
			t.Errorf("%+v", d.Tool)
		}
	}
}

func TestToolsRefusedAlone(t *testing.T) {
	t.Parallel()
	s := plainServer(t)
	found, refused := s.describeAll(listOf(`{"name":"twice","description":"1"}`, `{"name":"twice","description":"2"}`,
		`{"name":""}`, `{"description":"no name"}`, `{"name":7}`, `"text"`, `null`, `{"name":"last"}`))
	if len(found) != 2 || found[0].Tool.Description != "1" || found[1].Tool.SourceName != "last" {
		t.Errorf("found %+v", found)
	}
	want := []string{"name is empty", `no "name"`, `no "name"`, "JSON string", "JSON null", `lists "twice" twice`}
	if len(refused) != len(want) {
		t.Fatalf("refused %v", refused)
	}
	for i, r := range refused {
		if r.Name == "" || !strings.Contains(r.Err.Error(), want[i]) {
			t.Errorf("refusal %d: %s: %v", i, r.Name, r.Err)
		}
	}
	if !errors.Is(refused[5].Err, tools.ErrToolDuplicateName) || !errors.Is(refused[0].Err, tools.ErrToolInvalid) {
		t.Errorf("refused %v", refused)
	}
}

func TestNamesNeverMeet(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 300)
	names := []string{"get weather (sf)", "get_weather__sf_", "天気", "気温", "a:b", "a b", "a_b", long, long + "m", "..", "A", "a"}
	var entries []string
	for _, n := range names {
		quoted, _ := json.Marshal(n)
		entries = append(entries, `{"name":`+string(quoted)+`}`)
	}
	found, refused := plainServer(t).describeAll(listOf(entries...))
	if len(found) != len(names) || len(refused) != 0 {
		t.Errorf("%d of %d, refused %v", len(found), len(names), refused)
	}
	for i, d := range found {
		if tools.CheckName(d.Tool.Name) != nil || d.Tool.SourceName != names[i] {
			t.Errorf("%q became %q", names[i], d.Tool.Name)
		}
	}
}

func TestHintsNeverLowerARestriction(t *testing.T) {
	t.Parallel()
	for annotations, want := range map[string]tools.Safety{
		``:                          {},
		`null`:                      {},
		`[true]`:                    {},
		`{"readOnlyHint":"true"}`:   {},
		`{"readOnlyHint":1}`:        {},
		`{"readOnlyHint":true}`:     {ReadOnly: tools.Yes},
		`{"readOnlyHint":false}`:    {ReadOnly: tools.No},
		`{"destructiveHint":false}`: {Destructive: tools.No},
		`{"readOnlyHint":true,"destructiveHint":true}`: {Destructive: tools.Yes},
		`{"idempotentHint":true,"openWorldHint":true}`: {Idempotent: tools.Yes, OpenWorld: tools.Yes},
	} {
		if got := safetyOf(json.RawMessage(annotations)); got != want {
			t.Errorf("%s: %+v", annotations, got)
		}
	}
}
