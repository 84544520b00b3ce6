package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// linkedCase is a schema with resources, anchors and references of all kinds.
type linkedCase struct {
	raw  []byte
	opts Options
}

// genLinked makes schemas whose parts refer to each other, to parts with an id
// or an anchor, and to another document.
func genLinked() *rapid.Generator[linkedCase] {
	return rapid.Custom(func(t *rapid.T) linkedCase {
		draft := rapid.SampledFrom([]Draft{Draft4, Draft6, Draft7, Draft2019, Draft2020, Draft2020}).Draw(t, "draft")
		g := linkedGen{draft}
		root := g.object(t, "root", "")
		root[g.defs()] = map[string]any{
			"r": g.object(t, "r", "r"), "n": g.resource(t, "nested", "http://x.test/n"), "s": g.object(t, "s", ""),
		}
		if draft == Draft2019 && rapid.Bool().Draw(t, "root recursive") {
			root["$recursiveAnchor"] = true
		}
		other := g.resource(t, "other", "http://x.test/other")
		return linkedCase{encode(root), Options{Draft: draft, Resources: map[string]json.RawMessage{"http://x.test/other": encode(other)}}}
	})
}

type linkedGen struct{ draft Draft }

func (g linkedGen) defs() string {
	if g.draft < Draft2019 {
		return "definitions"
	}
	return "$defs"
}

func (g linkedGen) idKey() string {
	if g.draft == Draft4 {
		return "id"
	}
	return "$id"
}

// resource is a schema with an id, and parts of its own.
func (g linkedGen) resource(t *rapid.T, label, id string) map[string]any {
	out := g.object(t, label, "")
	delete(out, "$ref")
	out[g.idKey()] = id
	out[g.defs()] = map[string]any{"r": g.object(t, label+" r", "r"), "s": g.object(t, label+" s", "d")}
	if g.draft == Draft2019 {
		out["$recursiveAnchor"] = rapid.Bool().Draw(t, label+" recursive")
	}
	return out
}

// object is a schema that refers, and has an anchor if one is given.
func (g linkedGen) object(t *rapid.T, label, anchor string) map[string]any {
	out := map[string]any{}
	if body, ok := genSchema(1).Draw(t, label).(map[string]any); ok {
		out = maps.Clone(body)
	}
	delete(out, "$ref")
	if g.draft == Draft4 {
		for _, k := range []string{"exclusiveMinimum", "exclusiveMaximum", "enum", "required"} {
			delete(out, k)
		}
	}
	g.refer(t, label, out)
	switch {
	case anchor == "" || rapid.IntRange(0, 3).Draw(t, label+" named") == 0:
	case g.draft < Draft2019:
		if out["$ref"] == nil {
			out[g.idKey()] = "#" + anchor
		}
	case g.draft == Draft2020 && anchor == "d":
		out["$dynamicAnchor"] = anchor
	default:
		out["$anchor"] = anchor
	}
	return out
}

func (g linkedGen) refer(t *rapid.T, label string, out map[string]any) {
	target := rapid.SampledFrom([]string{
		"#/" + g.defs() + "/r", "#/" + g.defs() + "/s", "http://x.test/n", "http://x.test/other", "http://x.test/n#/" + g.defs() + "/s",
		"#", "#r", "http://x.test/other#r",
	})
	place := rapid.SampledFrom([]string{"", "", "items", "additionalProperties", "not", "allOf", "anyOf"}).Draw(t, label+" place")
	ref := map[string]any{"$ref": target.Draw(t, label+" target")}
	if rapid.IntRange(0, 2).Draw(t, label+" dynamic") == 0 {
		switch g.draft {
		case Draft2020:
			ref = map[string]any{"$dynamicRef": rapid.SampledFrom([]string{"#d", "http://x.test/other#d", "http://x.test/n#d", "#"}).Draw(t, label+" anchor")}
		case Draft2019:
			ref = map[string]any{"$recursiveRef": "#"}
		}
	}
	switch place {
	case "":
		maps.Copy(out, ref)
	case "allOf", "anyOf":
		out[place] = []any{ref, true}
		if g.draft == Draft4 {
			out[place] = []any{ref, map[string]any{}}
		}
	default:
		out[place] = ref
	}
}

// TestLinkedDifferential compares what references mean with the oracle. Schemas
// that neither takes, since what they refer to is not there, say nothing.
func TestLinkedDifferential(t *testing.T) {
	taken := 0
	rapid.Check(t, func(t *rapid.T) {
		if checkLinked(t) {
			taken++
		}
	})
	if taken == 0 {
		t.Error("no schema was taken")
	}
	t.Logf("%d schemas were taken by both", taken)
}

// checkLinked reports whether both take a random schema.
func checkLinked(t *rapid.T) bool {
	c := genLinked().Draw(t, "schema")
	want, wantErr := oracle(c.raw, &c.opts)
	s, err := Compile(c.raw, &c.opts)
	switch {
	case err == nil && wantErr != nil && excusable(wantErr):
		return false
	case err != nil && wantErr == nil && bytes.Contains(c.raw, []byte(`"if":`)) && strings.Contains(err.Error(), "points to nothing"):
		return false // the oracle does not look into the branch that a constant "if" never takes
	case (err == nil) != (wantErr == nil):
		t.Fatalf("draft %d %s\nwith %s\nours: %v\noracle: %v", c.opts.Draft, c.raw, c.opts.Resources, err, wantErr)
	case err != nil:
		return false
	}
	for range 5 {
		raw := encode(genValue(3).Draw(t, "doc"))
		got, expected := s.Check(raw), want.Validate(numbersOf(raw))
		if (got == nil) != (expected == nil) {
			if c.entersRecursion() || s.isParadox() {
				return false
			}
			t.Fatalf("draft %d %s\nwith %s\ndocument %s\nours: %v\noracle: %v", c.opts.Draft, c.raw, c.opts.Resources, raw, got, expected)
		}
	}
	return true
}

// entersRecursion reports whether a $ref may lead into the middle of a resource with
// $recursiveAnchor. The oracle then takes where it entered for the resource, which
// the specification does not.
func (c linkedCase) entersRecursion() bool {
	all := string(c.raw)
	for _, r := range c.opts.Resources {
		all += string(r)
	}
	return c.opts.Draft == Draft2019 && strings.Contains(all, `"$recursiveRef"`) && strings.Contains(all, `"$recursiveAnchor":true`) &&
		(strings.Contains(all, `#r"`) || strings.Contains(all, `#/$defs/`))
}

// A $recursiveRef in the middle of a resource, into which a $ref led, goes to the
// resource's root.
func TestRecursionFromTheMiddle(t *testing.T) {
	s, err := Compile([]byte(`{"$ref":"http://x.test/other#r"}`), &Options{Draft: Draft2019, Resources: map[string]json.RawMessage{
		"http://x.test/other": json.RawMessage(`{"$id":"http://x.test/other","$recursiveAnchor":true,"type":["null","array"],"$defs":{"r":{"$anchor":"r","$recursiveRef":"#"}}}`)}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check([]byte(`null`)); err != nil {
		t.Error(err)
	}
	if err := s.Check([]byte(`1`)); err == nil {
		t.Error("a number passed")
	}
}

func numbersOf(raw []byte) any {
	v, err := decode(raw)
	if err != nil {
		panic(fmt.Sprintf("%s: %v", raw, err))
	}
	return v
}

func FuzzLinked(f *testing.F) { f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { checkLinked(t) })) }
