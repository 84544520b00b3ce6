package main

import (
	"bytes"
	"testing"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/registry"
)

func TestWarningOfASourcesState(t *testing.T) {
	for _, c := range []struct {
		row  api.Source
		want string
	}{
		{api.Source{Name: "memory", State: "replacing"}, "toolcrib: source memory is replacing\n"},
		{api.Source{Name: "memory", State: "down", Error: "it ended\nat once"}, "toolcrib: source memory is down: it ended…\n"},
	} {
		var errOut bytes.Buffer
		(&app{errOut: &errOut}).warnOfState(&c.row)
		if errOut.String() != c.want {
			t.Errorf("got %q, want %q", &errOut, c.want)
		}
	}
}

func TestStateOfAWorker(t *testing.T) {
	for _, c := range []struct {
		worker     registry.WorkerState
		want, says string
	}{
		{registry.WorkerState{Up: true}, "up", ""},
		{registry.WorkerState{Up: true, Draining: true, Hindered: "no"}, "draining", "no"},
		{registry.WorkerState{Hindered: "no"}, "down", ""},
		{registry.WorkerState{Up: true, Hindered: "it may not \x1b[2Jclaim\nmore"}, "hindered", "it may not [2Jclaim…"},
	} {
		c.worker.Instance = "w1"
		if got := stateOf(&c.worker); got != c.want {
			t.Errorf("%+v is %s, want %s", c.worker, got, c.want)
		}
		var errOut bytes.Buffer
		(&app{errOut: &errOut}).remarkOn(&registry.ToolsetState{Name: "post", Workers: []registry.WorkerState{c.worker}})
		want := ""
		if c.says != "" {
			want = "toolcrib: toolset post: worker w1 is kept from serving calls: " + c.says + "\n"
		}
		if errOut.String() != want {
			t.Errorf("of %+v it says %q, want %q", c.worker, &errOut, want)
		}
	}
}

func TestFirstLine(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{
		{"", 10, ""},
		{"  one\ttwo  ", 10, "one two"},
		{"one\ntwo", 10, "one…"},
		{"äöüäöü", 4, "äöü…"},
		{"exact", 5, "exact"},
		{"red \x1b[31malert\a\u009b", 40, "red [31malert"},
		{"deletes \u202eyletelpmoc\u202c nothing\u2066\u200f", 40, "deletes yletelpmoc nothing"},
	} {
		if got := firstLine(c.text, c.width); got != c.want {
			t.Errorf("firstLine(%q, %d): got %q, want %q", c.text, c.width, got, c.want)
		}
	}
}

func TestProgramMadeByGoRun(t *testing.T) {
	cache := "/home/ann/gocache/1f/1f0e0d0c0b0a090807060504030201001f0e0d0c0b0a09080706050403020100-d/toolcrib"
	for path, want := range map[string]bool{
		"/tmp/go-build123/b001/exe/toolcrib":         true,
		"/home/ann/.cache/go-build/1f/1f-d/toolcrib": true,
		cache:                             true,
		"/usr/local/bin/toolcrib":         false,
		"/home/ann/go/bin/toolcrib":       false,
		"/home/ann/my-go-builds/toolcrib": false,
	} {
		if got := goRan(path); got != want {
			t.Errorf("%s: got %v, want %v", path, got, want)
		}
	}
}

func TestQuoted(t *testing.T) {
	for path, want := range map[string]string{
		"/usr/bin/toolcrib": "/usr/bin/toolcrib",
		"/my tools/crib":    "'/my tools/crib'",
		"/it's/crib":        `'/it'\''s/crib'`,
	} {
		if got := quoted(path); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
