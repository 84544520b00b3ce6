// Package httptool makes tools of HTTP endpoints: of the operations of an
// OpenAPI 3.0 or 3.1 document ([NewOpenAPI]), and of the entries of a plain
// manifest ([NewManifest]). Both are a tools.ToolProvider.
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
// A request body may be JSON, a URL-encoded form or plain text. An operation
// that needs more is refused alone; so is one whose $ref leads nowhere, or
// whose server is unknown. References may lead to other files in the folder of
// the document, or to other documents at its origin.
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
// are dialled, unless Network.AllowPrivate is set. Redirects are followed up
// to five times; to another origin goes nothing but a bare GET. Secrets are
// removed from every error. Credentials go to the servers that the document
// names: set ServerURL where the document is not to be trusted with that.
package httptool
