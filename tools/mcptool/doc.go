// Package mcptool makes the tools of an MCP server tools of a catalog, and its
// resources, resource templates and prompts as well.
//
// A [Server] is one configured server: a child process that speaks on its
// standard input and output, or an endpoint of streamable HTTP or of HTTP+SSE.
// It implements [tools.ToolProvider]: Discover lists what the server offers, and
// the Invoke of each descriptor sends one tools/call, resources/read or
// prompts/get.
//
// Nothing that the server says is lost on the way. Arguments leave as the bytes
// they are, a result is kept whole in [tools.ToolResult.Wire] and its other
// fields are views of it, a tool object is kept whole in
// [tools.Tool.Definition], and a JSON-RPC error stands in the chain of the
// returned error as an [RPCError] with its code, message and data.
//
// All callers share one connection, unless [Config.Session] says otherwise. It
// is made once however many calls want it, and made again when it is lost, after
// a pause that grows while that fails. What a failed call knows of its delivery
// is in [tools.Error.Delivery].
//
// What a server asks of its client is put to the caller of the call that it
// belongs to. On a connection of the stateful era that callers share, a question
// belongs to no call, so the server is told that nobody can be asked; a
// connection of one session tells what that session's caller can be asked. In
// the stateless era each call tells that itself, and the question is its result.
package mcptool
