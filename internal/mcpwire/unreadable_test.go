package mcpwire_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
)

// A call whose answer cannot be read is not left to its time limit; what is printed
// beside the answers ends no call.
func TestAnswerThatCannotBeReadEndsItsCall(t *testing.T) {
	c, peer := connectWire(t, mcpwire.ClientOptions{})
	for name, rest := range map[string]string{
		"deep":      `"result":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000),
		"malformed": `"result":{"a":01}`,
	} {
		done := callAsync(t.Context(), c, "x", nil)
		f := peer.read()
		peer.write(`{"id":%s,"level":"info"}`, f.ID)
		peer.write(`{"jsonrpc":"2.0","id":%s,%s}`, f.ID, rest)
		if got := <-done; !errors.Is(got.err, mcpwire.ErrNoAnswer) || mcpwire.DeliveryOf(got.err) != mcpwire.MaybeDelivered {
			t.Errorf("%s: got %v", name, got.err)
		}
	}
	done := callAsync(t.Context(), c, "x", nil)
	peer.write(`{"jsonrpc":"2.0","id":%s,"result":{}}`, peer.read().ID)
	if got := <-done; got.err != nil {
		t.Error(got.err)
	}
	if n := c.Stats().Noise; n != 4 {
		t.Errorf("%d lines of noise", n)
	}
}
