// Package schema derives, compiles and checks JSON Schemas.
//
// [Compile] turns a schema into a [Schema], once. [Schema.Check] then reads the
// bytes of a document once, without decoding them: it finds what is not JSON,
// duplicate keys at any depth, and what the schema does not allow. A document
// that passes costs no allocation. Draft 2020-12 is the default and drafts 4, 6,
// 7 and 2019-09 are recognised by $schema.
//
// A schema of the common keywords is read and found valid in one pass of its
// own. Any other is checked against its meta-schema, and the references of it,
// to ids, anchors and the given resources, are resolved; the meta-schemas of the
// drafts are part of the package, and each is compiled when it is first needed.
// Nothing is ever loaded from a network or a file system.
//
// Numbers are compared exactly, whatever their size. "format" is an annotation
// unless [Options] says otherwise. A pattern means what ECMA-262 says; one that
// package regexp can express runs in linear time, and another on a backtracking
// engine with a limit on time. The work on a document is bounded.
//
// [For] and [Of] derive the schema of a Go type so that it agrees with what
// encoding/json does, for either direction. [Arguments] does so for the
// arguments of a tool.
package schema
