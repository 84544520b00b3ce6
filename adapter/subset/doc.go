// Package subset compiles a JSON Schema into the part of JSON Schema that a model
// provider takes, and maps the arguments that a model sends back to what the
// original schema describes.
//
// [Compile] reads a schema of draft 2020-12, or of an older draft, and a
// [Profile], which says what the provider takes. Meaning is kept where the
// provider has a way to say it: references are resolved, allOf is merged, unions
// are spread, const becomes enum, an optional property becomes one that may be
// null, an open map becomes a list of keys and values or a JSON text, a tuple
// becomes an object. What the provider has no way to enforce goes into the
// description as text, and is reported as a [Loss].
//
// The [Form] that comes out holds the provider's schema and knows the way back:
// [Form.Back] turns arguments in the provider's form into arguments for the
// original schema, and [Form.Forward] does the opposite for examples.
//
// Compiling always ends, and its output is bounded by the profile, whatever the
// schema is.
package subset
