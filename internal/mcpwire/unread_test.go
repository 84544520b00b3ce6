package mcpwire_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
)

// A client that sends and never reads cannot keep the server from ending: neither
// by what is answered at once nor by answers that wait.
func TestClientThatReadsNothingIsLeft(t *testing.T) {
	for _, method := range []string{"ping", "tools/list"} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in, client := io.Pipe()
				unread, out := io.Pipe()
				defer unread.Close()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				served := make(chan error, 1)
				go func() { served <- mcpwire.NewServer(echo{}, nil).ServeStdio(ctx, in, out) }()
				go func() {
					_, _ = io.WriteString(client, beginPipe+"\n")
					for id := range 2000 {
						if _, err := fmt.Fprintf(client, `{"jsonrpc":"2.0","id":%d,"method":%q}`+"\n", id+1, method); err != nil {
							return
						}
					}
				}()
				synctest.Wait()
				began := time.Now()
				cancel()
				select {
				case err := <-served:
					if !errors.Is(err, context.Canceled) && !errors.Is(err, mcpwire.ErrClosed) {
						t.Errorf("got %v", err)
					}
				case <-time.After(time.Minute):
					t.Error("it does not end")
				}
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}
