// Package schema derives, compiles and checks JSON Schemas.
//
// [Compile] turns a schema into a [Schema], once. [Schema.Check] then reads the
// bytes of a document once, without decoding them: it finds what is not JSON,
// duplicate keys at any depth, and what the schema does not allow. A document
// that passes costs no allocation. Draft 2020-12 is the default and drafts 4, 6,
// 7 and 2019-09 are recognised by $schema.
//
// Keywords are checked on the bytes, save for unevaluatedProperties and
// unevaluatedItems, whose schemas go to the full validator
// github.com/santhosh-tekuri/jsonschema, and for $dynamicRef, $recursiveRef and
// schemas that refer to themselves without end, which go to it whole. That
// validator also checks schemas against their meta-schemas, and resolves
// references, for what few schemas use; a schema of the common keywords is read
// and checked in a tenth of the time, with the same outcome. Nothing is ever
// loaded from a network or a file system.
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
