// Package large holds tests in which MCP servers answer with far more than the gateway may have in memory. The gateway is a
// process of its own, and its size is what is looked at. A flag makes the largest result larger:
//
//	go test ./test/large -megabytes=1000 -v
//
// The tests under the build tag peers do the same with a server on the official TypeScript SDK.
package large
