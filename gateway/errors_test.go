package gateway

import (
	"strings"
	"testing"
)

func TestFaultsCanBeShownOnATerminal(t *testing.T) {
	e := &ConfigError{File: "f", Line: 1, Column: 2, Path: "tools.\x1b[31mred", Problem: strings.Repeat("k", 1<<20) + " is unknown"}
	got := e.Error()
	if strings.ContainsRune(got, 0x1b) || len(got) > 1000 || !strings.Contains(got, `\x1b[31mred`) {
		t.Errorf("%.200q", got)
	}
	if got := (&ConfigError{Path: "größe", Problem: "ist unbekannt"}).Error(); got != "größe: ist unbekannt" {
		t.Error(got)
	}
}
