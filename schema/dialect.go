package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// vocabulary is a set of keywords that a meta-schema of draft 2019-09 or later
// turns on or off.
type vocabulary uint8

const (
	applicators vocabulary = 1 << iota
	unevaluated
	validation
	formats
	annotations // of content and for readers: nothing is checked by them

	// core keywords are always on.
	core          vocabulary = 0
	allVocabulary            = applicators | unevaluated | validation | formats | annotations
)

// dialect is what a $schema stands for.
type dialect struct {
	draft      Draft
	vocabulary vocabulary
	// assertsFormat says that the meta-schema names the vocabulary that asserts
	// "format".
	assertsFormat bool
	// meta is what schemas are checked against, nil to trust them.
	meta *Schema
}

// standardDraft returns the draft whose meta-schema has the given URL.
func standardDraft(url string) (Draft, bool) {
	url, _, _ = strings.Cut(url, "#")
	url, ok := strings.CutPrefix(url, "http")
	if !ok {
		return 0, false
	}
	switch strings.TrimPrefix(url, "s") {
	case "://json-schema.org/draft-04/schema":
		return Draft4, true
	case "://json-schema.org/draft-06/schema":
		return Draft6, true
	case "://json-schema.org/draft-07/schema":
		return Draft7, true
	case "://json-schema.org/draft/2019-09/schema":
		return Draft2019, true
	case "://json-schema.org/draft/2020-12/schema", "://json-schema.org/schema":
		return Draft2020, true
	}
	return 0, false
}

// vocabularyNamed returns the keywords that a vocabulary's URL stands for.
func vocabularyNamed(url string) (v vocabulary, known bool) {
	name, ok := strings.CutPrefix(url, "https://json-schema.org/draft/2020-12/vocab/")
	if !ok {
		if name, ok = strings.CutPrefix(url, "https://json-schema.org/draft/2019-09/vocab/"); !ok {
			return 0, false
		}
		if name == "applicator" {
			return applicators | unevaluated, true // of one vocabulary then
		}
	}
	switch name {
	case "core":
		return core, true
	case "applicator":
		return applicators, true
	case "unevaluated":
		return unevaluated, true
	case "validation":
		return validation, true
	case "format", "format-annotation", "format-assertion":
		return formats, true
	case "content", "meta-data":
		return annotations, true
	}
	return 0, false
}

// has reports whether the dialect gives a keyword a meaning.
func (d *dialect) has(keyword []byte) bool {
	since, until, v := spanOf(keyword)
	return since <= d.draft && d.draft <= until && (v == core || d.vocabulary&v != 0)
}

// spanOf returns the first and the last draft that know a keyword, and the
// vocabulary that it belongs to. It returns an empty span for an unknown one.
func spanOf(keyword []byte) (since, until Draft, v vocabulary) {
	switch string(keyword) {
	case "$ref", "definitions":
		return Draft4, Draft2020, core
	case "$defs":
		return Draft2019, Draft2020, core
	case "$dynamicRef":
		return Draft2020, Draft2020, core
	case "$recursiveRef":
		return Draft2019, Draft2019, core
	case "format":
		return Draft4, Draft2020, formats
	case "contentSchema":
		return Draft2019, Draft2020, annotations
	}
	if since, until, ok := spanOfApplicator(keyword); ok {
		return since, until, applicators
	}
	if since, ok := sinceOfValidation(keyword); ok {
		return since, Draft2020, validation
	}
	if strings.HasPrefix(string(keyword), "unevaluated") {
		return Draft2019, Draft2020, unevaluated
	}
	return Draft2020, Draft4, core
}

func spanOfApplicator(keyword []byte) (since, until Draft, ok bool) {
	switch string(keyword) {
	case "properties", "patternProperties", "additionalProperties", "items", "allOf", "anyOf", "oneOf", "not", "dependencies":
		return Draft4, Draft2020, true
	case "additionalItems":
		return Draft4, Draft2019, true
	case "propertyNames", "contains":
		return Draft6, Draft2020, true
	case "if", "then", "else":
		return Draft7, Draft2020, true
	case "dependentSchemas":
		return Draft2019, Draft2020, true
	case "prefixItems":
		return Draft2020, Draft2020, true
	}
	return 0, 0, false
}

func sinceOfValidation(keyword []byte) (since Draft, ok bool) {
	switch string(keyword) {
	case "type", "enum", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength",
		"pattern", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "required":
		return Draft4, true
	case "const":
		return Draft6, true
	case "minContains", "maxContains", "dependentRequired":
		return Draft2019, true
	}
	return 0, false
}

// dialectOf returns the dialect of a document.
func (l *linker) dialectOf(text []byte) (*dialect, error) {
	if v, ok := rawjson.Get(text, "$schema"); ok {
		if url, ok := rawjson.Unquote(v); ok {
			return l.dialect(url)
		}
	}
	return l.standard(l.opts.Draft), nil
}

// standard returns the dialect of a draft.
func (l *linker) standard(draft Draft) *dialect {
	if draft == DraftDefault {
		draft = Draft2020
	}
	name := fmt.Sprint(int(draft))
	if l.dialects[name] == nil {
		d := &dialect{draft: draft, vocabulary: allVocabulary}
		if l.meta != nil {
			d.meta = l.meta(draft)
		}
		l.dialects[name] = d
	}
	return l.dialects[name]
}

// dialect returns what a $schema stands for.
func (l *linker) dialect(url string) (*dialect, error) {
	if draft, ok := standardDraft(url); ok {
		return l.standard(draft), nil
	}
	url, _, _ = strings.Cut(url, "#")
	if d := l.dialects[url]; d != nil {
		return d, nil
	}
	if slices.Contains(l.trail, url) {
		return nil, &CompileError{Reason: fmt.Sprintf("$schema %q leads back to itself", local(url))}
	}
	d, err := l.custom(url)
	if err != nil {
		return nil, err
	}
	l.dialects[url] = d
	return d, nil
}

// custom makes a dialect of a meta-schema among the resources.
func (l *linker) custom(url string) (*dialect, error) {
	text, ok := l.textOf(url)
	if !ok || url == "" {
		return nil, notGiven("$schema", url)
	}
	on := newLinker(l.opts, l.meta)
	on.trail = append(slices.Clone(l.trail), url)
	parent, err := on.dialectOf(text)
	if err != nil {
		return nil, err
	}
	d := &dialect{draft: parent.draft, vocabulary: allVocabulary}
	if err := d.choose(text); err != nil {
		return nil, err
	}
	graph, err := on.link(url, text)
	if err != nil {
		return nil, err
	}
	root, err := translate(graph)
	if err != nil {
		return nil, err
	}
	d.meta = newSchema(text, root, l.opts)
	return d, nil
}

// choose turns on what the $vocabulary of a meta-schema names.
func (d *dialect) choose(meta []byte) error {
	list, ok := rawjson.Get(meta, "$vocabulary")
	if !ok || d.draft < Draft2019 {
		return nil
	}
	d.vocabulary = 0
	for it := rawjson.Object(list); it.Next(); {
		v, known := vocabularyNamed(it.Key())
		if !known && string(it.Value()) == "true" {
			return &CompileError{Reason: fmt.Sprintf("the vocabulary %q is not known", clip(it.Key(), maxPath))}
		}
		d.vocabulary |= v
		d.assertsFormat = d.assertsFormat || strings.HasSuffix(it.Key(), "/vocab/format-assertion")
	}
	return nil
}
