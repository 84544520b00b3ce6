package natsstream

import (
	"net"
	"sync/atomic"
	"time"
)

// silence is how long a connection may bring nothing before it counts as dead. The
// answer to a ping comes every pingInterval, but over a slow link it waits behind
// large messages, whose bytes are a sign of life as well.
const silence = 3 * pingInterval

// maxPings is how many pings may be without an answer as long as bytes come.
const maxPings = 60

// dialer makes connections that end when they are silent.
type dialer struct{ net.Dialer }

// Dial implements [nats.CustomDialer].
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	conn, err := d.Dialer.Dial(network, address)
	if err != nil {
		return nil, err
	}
	return &watched{Conn: conn}, nil
}

// watched is a connection whose reads fail after a silence. A deadline that is set
// on it, as while a connection is made, comes first.
type watched struct {
	net.Conn
	bounded atomic.Bool // a deadline was set
}

func (w *watched) Read(p []byte) (int, error) {
	if !w.bounded.Load() {
		if err := w.Conn.SetReadDeadline(time.Now().Add(silence)); err != nil {
			return 0, err
		}
	}
	return w.Conn.Read(p)
}

func (w *watched) SetDeadline(t time.Time) error {
	w.bounded.Store(!t.IsZero())
	return w.Conn.SetDeadline(t)
}

func (w *watched) SetReadDeadline(t time.Time) error {
	w.bounded.Store(!t.IsZero())
	return w.Conn.SetReadDeadline(t)
}
