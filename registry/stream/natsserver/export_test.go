package natsserver

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// Received counts the messages that a server has received from the clients it has.
func Received(t *testing.T, s *Server) int64 {
	t.Helper()
	conns, err := s.nats.Connz(&server.ConnzOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var total int64
	for _, conn := range conns.Conns {
		total += conn.InMsgs
	}
	return total
}

// FailWrite lets a server believe that it could not write to its disk.
func FailWrite(s *Server) { s.keeper.heard("Critical write error: no space left on device") }
