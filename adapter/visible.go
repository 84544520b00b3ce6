package adapter

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolcrib/toolcrib/adapter/subset"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// withoutInjected returns the schema of a tool's arguments without those that
// are hidden.
func withoutInjected(t *tools.Tool) (json.RawMessage, error) {
	schema := []byte(t.ArgsSchema)
	if len(t.Injected) == 0 || rawjson.KindOf(schema) != rawjson.KindObject {
		return schema, nil
	}
	if err := rawjson.Check(schema, rawjson.Options{}); err != nil {
		return nil, fmt.Errorf("the schema of the arguments is %w", err)
	}
	hidden := make([]string, len(t.Injected))
	for i, in := range t.Injected {
		hidden[i] = in.Arg
	}
	return hide(schema, hidden)
}

// hide takes properties out of the root of a schema.
func hide(schema []byte, hidden []string) ([]byte, error) {
	var err error
	if properties, ok := rawjson.Get(schema, "properties"); ok && rawjson.KindOf(properties) == rawjson.KindObject {
		for _, key := range hidden {
			if properties, err = rawjson.Delete(properties, key); err != nil {
				return nil, err
			}
		}
		if schema, err = rawjson.Set(schema, "properties", properties); err != nil {
			return nil, err
		}
	}
	required, ok := rawjson.Get(schema, "required")
	if !ok || rawjson.KindOf(required) != rawjson.KindArray {
		return schema, nil
	}
	kept := []byte("[")
	for it := rawjson.Array(required); it.Next(); {
		if name, _ := rawjson.Unquote(it.Value()); slices.Contains(hidden, name) {
			continue
		}
		if len(kept) > 1 {
			kept = append(kept, ',')
		}
		kept = append(kept, it.Value()...)
	}
	return rawjson.Set(schema, "required", append(kept, ']'))
}

// maxExamples bounds how many examples a declaration shows, and maxExample how
// large one is, in bytes.
const (
	maxExamples = 3
	maxExample  = 1 << 10
)

// examplesOf returns the examples of a tool in the provider's form. One that has
// none, or that names a hidden argument, is left out.
func examplesOf(t *tools.Tool, form *subset.Form) []json.RawMessage {
	var list []json.RawMessage
	for _, e := range t.Examples {
		if len(list) == maxExamples {
			break
		}
		if slices.ContainsFunc(t.Injected, func(in tools.Injected) bool { _, shows := e.Args[in.Arg]; return shows }) {
			continue
		}
		args := e.Args
		if args == nil {
			args = map[string]any{}
		}
		enc, err := json.Marshal(args)
		if err != nil {
			continue
		}
		if shown, err := form.Forward(rawjson.UnescapeHTML(enc)); err == nil && len(shown) <= maxExample {
			list = append(list, shown)
		}
	}
	return list
}

// prose returns the description, the safety notes and the hints of a tool.
func prose(t *tools.Tool) string {
	var parts []string
	add := func(s string) {
		if s = strings.TrimSpace(s); s != "" {
			parts = append(parts, s)
		}
	}
	if t.Description == "" {
		add(t.Title)
	}
	add(t.Description)
	add(safety(t))
	add(hints(t))
	return strings.Join(parts, "\n\n")
}

// safety returns the safety notes, and what is known to be dangerous.
func safety(t *tools.Tool) string {
	var said []string
	if notes := strings.TrimSpace(t.SafetyNotes); notes != "" {
		said = append(said, notes)
	}
	for _, known := range []struct {
		flag tools.Flag
		text string
	}{
		{t.Safety.Destructive, "It may overwrite or delete."},
		{t.Safety.Spend, "It may cost money."},
		{t.Safety.NeedsConfirmation, "A person must agree to each call."},
	} {
		if known.flag == tools.Yes {
			said = append(said, known.text)
		}
	}
	if len(said) == 0 {
		return ""
	}
	return "Safety: " + strings.Join(said, " ")
}

// hints says what a call costs.
func hints(t *tools.Tool) string {
	var said []string
	if cost := strings.TrimSpace(t.CostHint); cost != "" {
		said = append(said, "Cost: "+strings.TrimSuffix(cost, ".")+".")
	}
	if t.LatencyHint > 0 {
		said = append(said, "Usually takes "+shortDuration(t.LatencyHint)+".")
	}
	return strings.Join(said, " ")
}

func shortDuration(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		d = d.Round(time.Second)
	case d >= time.Second:
		d = d.Round(100 * time.Millisecond)
	}
	return d.String()
}

// proseWithExamples is prose for providers that have no other place for
// examples.
func proseWithExamples(d *Declaration) string {
	text := prose(d.original)
	if len(d.examples) == 0 {
		return text
	}
	var b strings.Builder
	b.WriteString(text)
	if text != "" {
		b.WriteString("\n\n")
	}
	b.WriteString("Examples of arguments:")
	for _, e := range d.examples {
		b.WriteString("\n")
		b.Write(e)
	}
	return b.String()
}
