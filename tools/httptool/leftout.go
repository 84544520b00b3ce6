package httptool

import (
	"slices"
	"sync"

	"github.com/toolcrib/toolcrib/tools"
)

// leftOut remembers what the last reading of a document or manual left out. It
// is safe for concurrent use.
type leftOut struct {
	mu        sync.Mutex
	refused   []tools.Refusal
	unmatched []string
}

// Refused returns what the last Discover left out of the document or manual,
// and why.
func (l *leftOut) Refused() []tools.Refusal {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.refused)
}

// Unmatched returns the patterns of Include that matched nothing when the
// document or manual was last read.
func (l *leftOut) Unmatched() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.unmatched)
}

func (l *leftOut) keepRefused(list []tools.Refusal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused = list
}

func (l *leftOut) keepUnmatched(patterns []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unmatched = patterns
}
