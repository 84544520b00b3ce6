package main

import (
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/examples/internal/scripted"
	"github.com/toolcrib/toolcrib/examples/internal/shop"
)

func TestAgent(t *testing.T) {
	provider := scripted.Anthropic(shop.Script()...)
	defer provider.Close()
	var out strings.Builder
	err := agent{url: provider.URL, key: scripted.Key, model: "scripted"}.run(t.Context(), shop.Question, &out)
	if err != nil || provider.Err() != nil {
		t.Fatal(err, provider.Err(), out.String())
	}
	if out.String() != shop.Transcript {
		t.Errorf("%s", out.String())
	}
}
