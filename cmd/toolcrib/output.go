package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
)

// output is the form in which a command prints what it found.
type output struct{ format string }

func (o *output) addFlag(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.format, "output", "o", "text", "text or json")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
}

func (o *output) check() error {
	if o.format != "text" && o.format != "json" {
		return usageError{fmt.Errorf("--output %q: expected text or json", o.format)}
	}
	return nil
}

func (o *output) json() bool { return o.format == "json" }

// writeJSON prints v as indented JSON. Numbers keep their spelling.
func writeJSON(w io.Writer, v any) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(buf.Bytes())
	return err
}

// firstLine returns the beginning of a text, in one line of at most width
// characters.
func firstLine(text string, width int) string {
	line, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	runes := []rune(printable(strings.Join(strings.Fields(line), " ")))
	if len(runes) > width {
		return strings.TrimSpace(string(runes[:width-1])) + "…"
	}
	if more && len(runes) < width {
		return string(runes) + "…"
	}
	return string(runes)
}

// printable removes what would control a terminal, or show a line in another order
// than its own, as texts come from sources that the reader need not trust.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, text)
}

// orDash shows that a column is empty.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
