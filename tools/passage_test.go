package tools

import (
	"testing"
	"unsafe"
)

// What a call allocates first is 8 bytes of the runtime's and a passage, in a block
// of 768 bytes; the next larger one has 896.
func TestSizeOfAPassage(t *testing.T) {
	if size := unsafe.Sizeof(passage{}); size > 760 {
		t.Errorf("a passage has %d bytes, which do not fit into a block of 768", size)
	}
}
