package auth

import (
	"maps"
	"slices"
	"sync"

	"github.com/toolcrib/toolcrib/internal/mask"
)

// maxSent bounds a generation of the tokens that are remembered as sent.
const maxSent = 64

// sent remembers the access tokens that went to a service lately, which it may
// say again: those of requests under way, and with a renewed one its predecessor.
// There are two generations; a token that is still in use moves to the newer one.
type sent struct {
	mu         sync.Mutex
	young, old map[string]bool
	hides      *mask.Mask // of both; nil when it is to be made
}

func (s *sent) note(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.young[token] {
		return
	}
	if s.young == nil || len(s.young) >= maxSent {
		s.young, s.old = map[string]bool{}, s.young
		s.hides = nil
	}
	if !s.old[token] {
		s.hides = nil
	}
	s.young[token] = true
}

func (s *sent) mask() *mask.Mask {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hides == nil {
		s.hides = mask.New(slices.AppendSeq(slices.Collect(maps.Keys(s.young)), maps.Keys(s.old))...)
	}
	return s.hides
}
