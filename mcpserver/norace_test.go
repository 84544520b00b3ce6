//go:build !race

package mcpserver_test

// hugeSize is how many bytes of text a huge result has.
const hugeSize = 50 << 20
