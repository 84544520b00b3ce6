package registry

import (
	"errors"
	"strings"
	"testing"
)

// A worker's names are text of one line that can stand in a subject and in a table.
func TestNamesOfAWorker(t *testing.T) {
	for name, allowed := range map[string]bool{"w1": true, "*": true, ">": true, "a.b": true, "a b": true, "ü€😀": true, "../x": true,
		"": false, "\x00": false, "a\nb": false, "a\tb": false, "\x1b[31m": false, strings.Repeat("x", 512): false, strings.Repeat("x", 60): true} {
		a := Announcement{Toolset: "math", Instance: name}
		if err := a.check(); (err == nil) != allowed || err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("instance %.20q: %v", name, err)
		}
		if strings.TrimSpace(name) == "" || len(name) > 100 {
			continue
		}
		for _, a := range []Announcement{{Toolset: "math", Instance: "w", Version: name}, {Toolset: "math", Instance: "w", Host: name}} {
			if err := a.check(); (err == nil) != allowed {
				t.Errorf("version or host %q: %v", name, err)
			}
		}
	}
}
