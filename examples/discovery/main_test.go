package main

import (
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(&out); err != nil {
		t.Fatal(err)
	}
	want := "declared: [tool_call tool_get tool_search weather.get_current]\n" +
		"declared: [sea.get_tides tool_call tool_get tool_search weather.get_current]\n"
	if out.String() != want {
		t.Errorf("printed\n%s, want\n%s", out.String(), want)
	}
}
