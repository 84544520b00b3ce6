package yamldoc_test

import (
	"testing"

	"github.com/toolcrib/toolcrib/internal/yamldoc"
)

// What is wrong is said in the words of the document, not in those of Go.
func TestDecodeNamesKinds(t *testing.T) {
	for text, want := range map[string]string{
		"":             "d.yaml: there is nothing in the document",
		"# a remark":   "d.yaml: there is nothing in the document",
		"text: [a]":    "d.yaml:1:7: expected a text, found a list",
		"text: {a: b}": "d.yaml:1:7: expected a text, found a mapping",
		"number: x":    "d.yaml:1:9: expected a whole number, found a text",
		"number: [1]":  "d.yaml:1:9: expected a whole number, found a list",
		"share: x":     "d.yaml:1:8: expected a number, found a text",
		"yes: [1]":     "d.yaml:1:6: expected true or false, found a list",
		"inside: 1":    "",
		"list: {a: b}": "",
		"mapping: [a]": "",
	} {
		var d struct {
			Text    string         `yaml:"text"`
			Number  int            `yaml:"number"`
			Share   float64        `yaml:"share"`
			Yes     bool           `yaml:"yes"`
			List    []string       `yaml:"list"`
			Mapping map[string]any `yaml:"mapping"`
			Inside  struct{}       `yaml:"inside"`
		}
		err := (&yamldoc.Doc{File: "d.yaml", Data: []byte(text)}).Decode(&d, true)
		if err == nil || want != "" && err.Error() != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
		t.Log(err)
	}
}
