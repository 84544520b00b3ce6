// Package streamtest holds what every implementation of package stream must do,
// as one suite that runs against the real thing.
//
//	func TestStream(t *testing.T) {
//		streamtest.Run(t, func(t *testing.T) *streamtest.Backend {
//			server := startServer(t)
//			return &streamtest.Backend{Client: server.client, Restart: server.restart}
//		})
//	}
package streamtest
