package mcpwire

import (
	"encoding/json"
	"sync"
	"sync/atomic"
)

type notification struct {
	method  string
	params  json.RawMessage
	deliver func(method string, params json.RawMessage)
}

// A mailbox keeps notifications for the goroutine that delivers them, so that
// a slow receiver never holds up the connection. When it is full the oldest is
// dropped and counted.
type mailbox struct {
	signal  chan struct{}
	dropped *atomic.Int64

	mu    sync.Mutex
	queue []notification
}

// maxMail bounds how many notifications wait for one receiver.
const maxMail = 8192

func newMailbox(dropped *atomic.Int64) *mailbox {
	return &mailbox{signal: make(chan struct{}, 1), dropped: dropped}
}

func (m *mailbox) put(n notification) {
	m.mu.Lock()
	if len(m.queue) >= maxMail {
		m.queue = m.queue[1:]
		m.dropped.Add(1)
	}
	m.queue = append(m.queue, n)
	m.mu.Unlock()
	select {
	case m.signal <- struct{}{}:
	default:
	}
}

// drain delivers what is there, in order.
func (m *mailbox) drain() {
	for {
		m.mu.Lock()
		queue := m.queue
		m.queue = nil
		m.mu.Unlock()
		if len(queue) == 0 {
			return
		}
		for _, n := range queue {
			n.deliver(n.method, n.params)
		}
	}
}

// run delivers until stop is closed.
func (m *mailbox) run(stop <-chan struct{}) {
	for {
		select {
		case <-m.signal:
			m.drain()
		case <-stop:
			m.drain()
			return
		}
	}
}
