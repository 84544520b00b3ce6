// Package mcptool makes the tools of an MCP server tools of a catalog.
//
// A [Server] is one configured server: a child process that speaks on its
// standard input and output, or an endpoint of streamable HTTP. It implements
// [tools.ToolProvider]: Discover lists the server's tools, and the Invoke of
// each descriptor sends one tools/call.
//
// Nothing that the server says is lost on the way. Arguments leave as the bytes
// they are, a result is kept whole in [tools.ToolResult.Wire] and its other
// fields are views of it, a tool object is kept whole in
// [tools.Tool.Definition], and a JSON-RPC error stands in the chain of the
// returned error as an [RPCError] with its code, message and data.
//
// All callers share one connection. It is made once however many calls want it,
// and made again when it is lost, after a pause that grows while that fails.
// What a failed call knows of its delivery is in [tools.Error.Delivery].
package mcptool
