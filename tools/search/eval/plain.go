package main

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/toolcrib/toolcrib/tools"
)

// plain is the yardstick: textbook BM25 over the words of name, description and parameters.
type plain struct {
	names []string
	freqs []map[string]float64
	df    map[string]float64
	mean  float64
	size  []float64
}

func newPlain(v *tools.VisibleSet) *plain {
	p := &plain{df: map[string]float64{}}
	for _, t := range v.Tools() {
		var args struct {
			Properties map[string]struct {
				Description string `json:"description"`
			} `json:"properties"`
		}
		_ = json.Unmarshal(t.ArgsSchema, &args) // a tool without parameters has none to read
		text := []string{t.Name, t.Title, t.Description}
		for name, prop := range args.Properties {
			text = append(text, name, prop.Description)
		}
		p.add(t.Name, words(strings.Join(text, " ")))
	}
	return p
}

func words(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

func (p *plain) add(name string, text []string) {
	freq := map[string]float64{}
	for _, w := range text {
		if freq[w]++; freq[w] == 1 {
			p.df[w]++
		}
	}
	p.names, p.freqs = append(p.names, name), append(p.freqs, freq)
	p.size = append(p.size, float64(len(text)))
	p.mean += (float64(len(text)) - p.mean) / float64(len(p.size))
}

// find returns the names of the best tools.
func (p *plain) find(query string, limit int) []string {
	const k1, b = 1.2, 0.75
	type hit struct {
		name  string
		score float64
	}
	var hits []hit
	for i, freq := range p.freqs {
		score := 0.0
		for _, w := range words(query) {
			if f := freq[w]; f > 0 {
				idf := math.Log(1 + (float64(len(p.names))-p.df[w]+0.5)/(p.df[w]+0.5))
				score += idf * f * (k1 + 1) / (f + k1*(1-b+b*p.size[i]/p.mean))
			}
		}
		if score > 0 {
			hits = append(hits, hit{p.names[i], score})
		}
	}
	slices.SortFunc(hits, func(a, b hit) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.name, b.name)) })
	names := make([]string, 0, limit)
	for _, h := range hits[:min(limit, len(hits))] {
		names = append(names, h.name)
	}
	return names
}
