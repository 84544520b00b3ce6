// Package httptool makes tools of HTTP endpoints: of the operations of an
// OpenAPI 3 or Swagger 2.0 document ([NewOpenAPI]), of the tools of a UTCP
// manual ([NewUTCP]), and of the entries of a plain manifest ([NewManifest]).
// Each is a tools.ToolProvider.
//
// # Tools of an OpenAPI document
//
// Each operation is a tool named <name>_<operationId>, or after method and path
// where there is no operationId: "GET /users/{id}" becomes
// <name>_get_users_by_id. Characters that a tool's name cannot have become
// underscores; where that makes two names one, a hash sets them apart.
//
// The arguments are one flat object: the parameters by their names, and the
// request body, whole, as "body". A name that occurs in two places is followed
// by the place where it comes second ("id", "id_query"). Schemas are JSON
// Schema 2020-12; what they refer to stands under $defs. Up to 256 KiB of
// definitions are carried along with a schema, breadth first; what lies beyond
// accepts anything. Parameters that a credential or a configured header fills
// in are not shown.
//
// Of the media types of a request body, JSON is preferred to a form, a form to
// multipart unless only that can carry files, and those to text and bytes.
// Bytes are base64 in the argument. A file of a multipart body is an object
// with data (base64) or text, and optionally filename and content_type. Lines
// of JSON are a list, XML is a text. Where the media types say different
// things, as those of patches and images do, the argument "content_type"
// chooses one. Form fields of Swagger 2.0 are members of "body" too.
//
// Any style of a parameter is written as the specification has it. Lists in
// the style deepObject, which it does not define, have positions in brackets.
//
// An operation that cannot be called is refused alone: one whose $ref leads
// nowhere, or whose server is unknown. References may lead to anchors, to
// other files in the folder of the document, or to other documents at its
// origin.
//
// # Tools of a UTCP manual
//
// Each tool of the manual over HTTP is a tool named <name>_<tool>; its inputs
// are the schema of the arguments. An argument goes where the template says: a
// variable of the URL's path, a header of header_fields, the body of
// body_field, and otherwise the query. Tools of other transports are refused
// alone, as are those whose credential is a variable or OAuth and has no
// configured one in its place.
//
// # Results
//
// JSON is the structured result, byte for byte. Text is text; images and audio
// are content of their kind; other bytes are an embedded resource. An answer
// without a body is {"status": 204}, with "location" where the answer names
// one, and with "headers" for HEAD. ToolResult.Provider holds "http_status",
// "content_type" and some headers.
//
// A document is often wrong about what its API answers, and a call that had
// its effect must not fail for that. The output schema that a tool shows
// therefore has the documented schema, cut to 4 KiB, as one alternative and
// anything at all as the other; [ResponsesChecked] demands the documented one.
//
// # Failures
//
// A 4xx answer is a permanent error, with status and the beginning of the
// body; 408 and 429 are transient; 5xx is of its own class. Retry-After is
// passed on. A request of which nothing was written (refused connection,
// unknown host, failed TLS) was not delivered, and neither was one that got
// 429; one that was written and got no answer has an unknown outcome. An
// answer above the limit is an error and never cut.
//
// # Safety
//
// Values are escaped for where they stand, and a path segment "." or ".." is
// refused. Private, loopback and link-local addresses are refused when they
// are dialled, unless Network.AllowPrivate is set, and link-local ones even
// then unless the configuration itself names them. Redirects are followed up
// to five times; to another origin goes nothing but a bare GET. Secrets are
// removed from every error. Credentials go to the servers that the document
// or manual names: set ServerURL where it is not to be trusted with that.
package httptool
