package schema

import (
	"encoding/json"
	"errors"
	"io/fs"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// oracle compiles a schema with a validator of another hand, which says what
// ours should.
func oracle(raw json.RawMessage, opts *Options) (*jsonschema.Schema, error) {
	doc, err := decode(raw)
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(opts.Draft.oracle())
	c.UseRegexpEngine(func(source string) (jsonschema.Regexp, error) { return compilePattern(source) })
	c.UseLoader(noLoader{})
	if opts.AssertFormat {
		c.AssertFormat()
	}
	if err := c.AddResource(baseURL, doc); err != nil {
		return nil, err
	}
	for url, text := range opts.Resources {
		doc, err := decode(text)
		if err == nil {
			err = c.AddResource(url, doc)
		}
		var exists *jsonschema.ResourceExistsError
		if err != nil && !errors.As(err, &exists) {
			return nil, err
		}
	}
	s, err := c.Compile(baseURL)
	if err == nil {
		correct(s, !opts.AssertFormat, map[*jsonschema.Schema]bool{})
	}
	return s, err
}

// excusable reports whether the oracle refuses a schema that may be taken: its
// meta-schemas of drafts 6 and 7 demand more of enum than those of
// json-schema.org, it follows references that nothing leads to, and it does not
// look for parts of the schema on behalf of a resource.
func excusable(err error) bool {
	text := err.Error()
	return strings.Contains(text, "/enum'") || !strings.Contains(text, `root.json#" is not valid`)
}

func (d Draft) oracle() *jsonschema.Draft {
	switch d {
	case Draft4:
		return jsonschema.Draft4
	case Draft6:
		return jsonschema.Draft6
	case Draft7:
		return jsonschema.Draft7
	case Draft2019:
		return jsonschema.Draft2019
	}
	return jsonschema.Draft2020
}

// noLoader refuses to load anything.
type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, fs.ErrNotExist }

// String and MatchString make a pattern one of the oracle's.
func (p *pattern) String() string { return p.source }

func (p *pattern) MatchString(s string) bool {
	if p.linear != nil {
		return p.linear.MatchString(s)
	}
	ok, err := p.back.MatchString(s)
	if err != nil {
		panic(err)
	}
	return ok
}

// correct changes what the oracle does with drafts before 2019-09: it asserts
// formats, and const beside a reference, next to which nothing counts.
func correct(s *jsonschema.Schema, annotate bool, seen map[*jsonschema.Schema]bool) {
	if s == nil || seen[s] {
		return
	}
	seen[s] = true
	if s.DraftVersion < 2019 && annotate {
		s.Format = nil
	}
	if s.DraftVersion < 2019 && s.Ref != nil {
		s.Const = nil
	}
	next := []*jsonschema.Schema{
		s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else, s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020,
		s.UnevaluatedItems, s.ContentSchema,
	}
	if s.DynamicRef != nil {
		next = append(next, s.DynamicRef.Ref)
	}
	for _, list := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf, s.PrefixItems} {
		next = append(next, list...)
	}
	for _, p := range s.Properties {
		next = append(next, p)
	}
	for _, p := range s.PatternProperties {
		next = append(next, p)
	}
	for _, p := range s.DependentSchemas {
		next = append(next, p)
	}
	values := []any{s.AdditionalProperties, s.AdditionalItems, s.Items}
	for _, d := range s.Dependencies {
		values = append(values, d)
	}
	for _, v := range values {
		switch v := v.(type) {
		case *jsonschema.Schema:
			next = append(next, v)
		case []*jsonschema.Schema:
			next = append(next, v...)
		}
	}
	for _, n := range next {
		correct(n, annotate, seen)
	}
}
