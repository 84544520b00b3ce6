package natsstream

import (
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

func TestSilentConnectionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close() //nolint:errcheck // It is a pipe.
		conn := &watched{Conn: near}
		began := time.Now()
		go func() {
			for range 10 { // A slow link brings some bytes now and then.
				time.Sleep(silence * 9 / 10)
				far.Write([]byte("x")) //nolint:errcheck // The reader counts.
			}
		}()
		buf := make([]byte, 1)
		for i := range 10 {
			if _, err := conn.Read(buf); err != nil {
				t.Fatalf("byte %d: %v", i, err)
			}
		}
		last := time.Now()
		if _, err := conn.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Read of a silent connection = %v", err)
		}
		if after := time.Since(last); after != silence {
			t.Errorf("the silence was noticed after %v", after)
		}
		t.Logf("alive for %v", last.Sub(began))
	})
}

// While a connection is made its own deadline counts.
func TestDeadlinesOfOthersComeFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close() //nolint:errcheck // It is a pipe.
		conn := &watched{Conn: near}
		for name, set := range map[string]func(time.Time) error{"SetDeadline": conn.SetDeadline, "SetReadDeadline": conn.SetReadDeadline} {
			began := time.Now()
			if err := set(began.Add(time.Second)); err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != time.Second {
				t.Errorf("%s: Read = %v after %v", name, err, time.Since(began))
			}
			if err := set(time.Time{}); err != nil {
				t.Fatal(err)
			}
			began = time.Now()
			if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != silence {
				t.Errorf("%s without a deadline: Read = %v after %v", name, err, time.Since(began))
			}
		}
	})
}
