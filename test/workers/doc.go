// Package workers runs examples/worker as its README says: a gateway, a worker
// written in Go, and workers that serve an MCP server from npm, called over MCP
// and on the command line.
package workers
