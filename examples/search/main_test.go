package main

import (
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	t.Setenv("EMBEDDINGS_URL", "")
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	want := `tracker.create_issue
weather.get_forecast exact: false weak: false
1 match; [{wether weather} {forcast forecast}]
`
	if out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
	}
}
