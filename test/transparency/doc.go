// Package transparency shows that what passes between an MCP client and an MCP
// server is the same with the gateway between them as without it.
package transparency
