//go:build race

package mcpserver_test

// hugeSize is smaller under the race detector, which makes every byte dear.
const hugeSize = 4 << 20
