// Package mcpserver serves a catalog to MCP clients: over streamable HTTP and
// over pipes, revisions 2024-11-05 to 2026-07-28, both protocol eras on one
// endpoint.
//
// Each caller is listed the tools that it may see, under their canonical names,
// and calls them through the catalog's door. What an upstream MCP server says
// about a tool, and what it answers, passes on as bytes: fields, content types
// and numbers that this module does not know arrive as they were sent.
//
// Tools that are resources, resource templates or prompts ([tools.Kind]) are
// listed, read and got by the methods that the protocol has for them, and by the
// same door.
//
// # Questions
//
// A tool may ask its caller. A client of the stateful era is sent a request. In
// the stateless era the question is the result of the client's request: the
// call is parked, and goes on when the client makes the request again with its
// answers and with the sealed state that names the call.
//
// # Failures
//
// One table decides how a failed call is answered:
//
//   - A tool that does not exist or that the caller may not see, both the same,
//     is the JSON-RPC error -32602 "Unknown tool: NAME".
//   - A JSON-RPC error of an upstream MCP server passes with its code, message
//     and data.
//   - A catalog that demands an identity answers a caller without one with the
//     JSON-RPC error -32600.
//   - Everything else is a result with isError, so that the model reads it and
//     can do better: arguments that the schema refuses (in every revision, as
//     SEP-1303 asks of 2025-11-25 and later ones), calls that were denied or
//     rejected, overload, timeouts, tools that failed. Its _meta has the member
//     "toolcrib/error", an [ErrorInfo], for programs.
package mcpserver
