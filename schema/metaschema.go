package schema

import (
	"embed"
	"strings"
	"sync"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// metaFiles are the meta-schemas as json-schema.org publishes them.
//
//go:embed meta
var metaFiles embed.FS

// metaText returns the standard meta-schema, or a part of it, with the given
// URL.
func metaText(url string) ([]byte, bool) {
	url, ok := strings.CutPrefix(url, "http")
	if !ok {
		return nil, false
	}
	path, ok := strings.CutPrefix(strings.TrimPrefix(url, "s"), "://json-schema.org/")
	if !ok || strings.Contains(path, ".") {
		return nil, false
	}
	if draft, ok := standardDraft("http" + url); ok && draft < Draft2019 {
		path = strings.TrimSuffix(path, "/schema")
	}
	text, err := metaFiles.ReadFile("meta/" + strings.TrimPrefix(path, "draft/") + ".json")
	return rawjson.Trim(text), err == nil
}

// The compiled meta-schemas, each made when a schema is first checked against
// it.
var (
	meta4    = sync.OnceValue(func() *Schema { return compileMeta("http://json-schema.org/draft-04/schema") })
	meta6    = sync.OnceValue(func() *Schema { return compileMeta("http://json-schema.org/draft-06/schema") })
	meta7    = sync.OnceValue(func() *Schema { return compileMeta("http://json-schema.org/draft-07/schema") })
	meta2019 = sync.OnceValue(func() *Schema { return compileMeta("https://json-schema.org/draft/2019-09/schema") })
	meta2020 = sync.OnceValue(func() *Schema { return compileMeta("https://json-schema.org/draft/2020-12/schema") })
)

// metaSchema returns the compiled meta-schema of a draft.
func metaSchema(draft Draft) *Schema {
	switch draft {
	case Draft4:
		return meta4()
	case Draft6:
		return meta6()
	case Draft7:
		return meta7()
	case Draft2019:
		return meta2019()
	}
	return meta2020()
}

// compileMeta compiles a meta-schema that is part of the program.
func compileMeta(url string) *Schema {
	opts := &Options{AssertFormat: true}
	text, _ := metaText(url)
	graph, err := newLinker(opts, nil).link(url, text)
	var root *node
	if err == nil {
		root, err = translate(graph)
	}
	if err != nil {
		panic(err) // the meta-schemas are well-formed, which a test makes sure of
	}
	return newSchema(text, root, opts)
}
