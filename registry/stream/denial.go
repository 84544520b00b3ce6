package stream

import "sync"

// Denial is something that the backend did not permit a client's user.
type Denial struct {
	// Stream is the name of the stream that it is about, or Subject the subject. Both
	// are empty where that cannot be told.
	Stream, Subject string
	// Err is an ErrForbidden.
	Err error
}

// DenialTeller is a [Client] that tells of what the backend does not permit its user to
// send, or to ask for, also where nobody waits for an answer. What Subscribe and Respond
// are refused is not among that. The clients of this module are such.
type DenialTeller interface {
	// OnDenied has tell called with each denial from now on, until stop is called. It
	// is called by several goroutines, which it must not keep waiting, and must not use
	// the client.
	OnDenied(tell func(Denial)) (stop func())
}

// Denials hands denials on to those who want to hear of them. The zero value is ready.
// It is for implementations of [DenialTeller], and for concurrent use.
type Denials struct {
	mu    sync.Mutex
	heard map[*func(Denial)]struct{}
}

// OnDenied is that of [DenialTeller].
func (d *Denials) OnDenied(tell func(Denial)) (stop func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.heard == nil {
		d.heard = map[*func(Denial)]struct{}{}
	}
	key := &tell
	d.heard[key] = struct{}{}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.heard, key)
	}
}

// Tell tells all of a denial.
func (d *Denials) Tell(one Denial) {
	d.mu.Lock()
	all := make([]func(Denial), 0, len(d.heard))
	for tell := range d.heard {
		all = append(all, *tell)
	}
	d.mu.Unlock()
	for _, tell := range all {
		tell(one)
	}
}
