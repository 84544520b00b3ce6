package mcpwire_test

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A RoundTripper of which nothing is known has delivered a request once it
// looked at the body.
func TestDeliveryThroughOtherRoundTrippers(t *testing.T) {
	_, url, rt := serveWire(t, echo{}, nil)
	var failing atomic.Pointer[roundTrip]
	other := roundTrip(func(r *http.Request) (*http.Response, error) {
		if f := failing.Load(); f != nil && r.Method == http.MethodPost {
			return (*f)(r)
		}
		return rt.RoundTrip(r)
	})
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		fail     roundTrip
		delivery mcpwire.Delivery
	}{
		"before the body": {func(*http.Request) (*http.Response, error) { return nil, broken }, mcpwire.NotDelivered},
		"read": {func(r *http.Request) (*http.Response, error) {
			_, err := io.ReadAll(r.Body)
			return nil, errors.Join(err, broken)
		}, mcpwire.MaybeDelivered},
		"copied": {func(r *http.Request) (*http.Response, error) {
			_, err := io.Copy(io.Discard, r.Body)
			return nil, errors.Join(err, broken)
		}, mcpwire.MaybeDelivered},
	} {
		t.Run(name, func(t *testing.T) {
			failing.Store(nil)
			c := connect(t, &mcpwire.HTTPTransport{URL: url, RoundTripper: other}, &mcpwire.ClientOptions{Version: mcpwire.LatestStateful})
			failing.Store(&tt.fail)
			_, err := c.Call(t.Context(), "tools/list", nil, nil)
			failing.Store(nil)
			if !errors.Is(err, broken) || mcpwire.DeliveryOf(err) != tt.delivery {
				t.Errorf("got %v (%v)", err, mcpwire.DeliveryOf(err))
			}
		})
	}
}
