package redisstream

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"
)

// Times of a connection.
const (
	dialTimeout  = 5 * time.Second
	writeTimeout = 5 * time.Second
	readTimeout  = 10 * time.Second // An answer may wait for the server's disk.
	backoffFirst = 20 * time.Millisecond
	backoffMost  = time.Second
	closeTimeout = 5 * time.Second
)

// keepAlive notices a connection whose other side is gone in less than a lease; for a lease over 30 seconds in 25 seconds,
// for one under 6 in 5. So what was delivered over a link that was cut for longer than a lease does not arrive late.
func keepAlive(lease time.Duration) net.KeepAliveConfig {
	step := min(max(lease/6, time.Second), 5*time.Second).Truncate(time.Second)
	return net.KeepAliveConfig{Enable: true, Idle: 2 * step, Interval: step, Count: 3}
}

// dialError is the failure to connect: what was to be sent was not.
type dialError struct{ cause error }

func (e *dialError) Error() string { return "cannot connect: " + e.cause.Error() }
func (e *dialError) Unwrap() error { return e.cause }

// dialer makes connections for go-redis. It returns no error: where it cannot connect, the connection is one on which
// everything fails with a dialError. To go-redis itself a failure is a reason to log, to wait, and to try on its own;
// here whoever wanted to connect decides.
func dialer(config *tls.Config, alive net.KeepAliveConfig) func(ctx context.Context, network, addr string) (net.Conn, error) {
	plain := &net.Dialer{Timeout: dialTimeout, KeepAliveConfig: alive}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := plain.DialContext(ctx, network, addr)
		if err != nil {
			return noConn{&dialError{err}}, nil
		}
		if config == nil {
			return conn, nil
		}
		shaking, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		secure := tls.Client(conn, config)
		if err := secure.HandshakeContext(shaking); err != nil {
			return noConn{&dialError{errors.Join(err, conn.Close())}}, nil
		}
		return secure, nil
	}
}

// noConn is a connection that was not made.
type noConn struct{ err error }

func (c noConn) Read([]byte) (int, error)         { return 0, c.err }
func (c noConn) Write([]byte) (int, error)        { return 0, c.err }
func (c noConn) Close() error                     { return nil }
func (c noConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c noConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c noConn) SetDeadline(time.Time) error      { return nil }
func (c noConn) SetReadDeadline(time.Time) error  { return nil }
func (c noConn) SetWriteDeadline(time.Time) error { return nil }

// backoff is how long to wait between tries, longer each time.
type backoff struct{ next time.Duration }

// wait returns false when ctx ended first.
func (b *backoff) wait(ctx context.Context) bool {
	b.next = min(max(2*b.next, backoffFirst), backoffMost)
	timer := time.NewTimer(b.next)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func (b *backoff) reset() { b.next = 0 }
