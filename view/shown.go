package view

import (
	"hash/maphash"
	"sync"
)

// digest tells one list from another within this process. Nobody outside knows
// the seeds, so that nobody can make two lists alike.
type digest [2]uint64

var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func digestOf(b []byte) digest { return digest{maphash.Bytes(seeds[0], b), maphash.Bytes(seeds[1], b)} }

// Shown remembers the list that one caller was shown last. The zero Shown
// remembers none. It is safe for concurrent use.
type Shown struct {
	mu         sync.Mutex
	some       bool
	generation uint64
	digest     digest
}

// Show remembers that the caller was shown l. A list that is older than the one
// it was shown last is passed over.
func (s *Shown) Show(l *List) {
	digest := l.digest()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.some && l.generation < s.generation {
		return
	}
	s.some, s.generation, s.digest = true, l.generation, digest
}

// Changed reports whether l, in its bytes, differs from what the caller was
// shown last, and from then on takes l for what it was shown: a difference is
// reported once. A caller that was shown nothing yet has seen no change.
func (s *Shown) Changed(l *List) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.some || l.generation < s.generation {
		return false
	}
	digest := l.digest()
	changed := digest != s.digest
	s.generation, s.digest = l.generation, digest
	return changed
}
