// Package rawjson works on the bytes of a JSON document without turning them
// into Go values, so that whatever a document says (the order of members,
// integers beyond 2^53, unknown members, the spelling of a number) survives.
//
// It checks a document ([Check], [Valid]), finds where a value ends ([End]),
// walks objects and arrays ([Object], [Array]), reads one member ([Get]), and
// changes one member while it leaves every other byte as it was ([Set],
// [Delete]). The grammar is RFC 8259. Nothing here allocates on the common path
// except where a new document is the result.
//
// Every function is safe on any input: nesting is bounded (by [DefaultMaxDepth]
// unless an option says otherwise) and no input makes one panic.
package rawjson
