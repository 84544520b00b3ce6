package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/registry/stream/connect"
)

// Who is turned away without having said who it is hears which flag that takes.
func TestUnreachedNamesTheMissingToken(t *testing.T) {
	refused, gone := errors.New("nats: Authorization Violation"), errors.New("nats: no servers available")
	for _, c := range []struct {
		login connect.Options
		err   error
		hint  bool
	}{
		{connect.Options{}, refused, true},
		{connect.Options{}, gone, false},
		{connect.Options{TokenFile: "token"}, refused, false},
		{connect.Options{NKeyFile: "seed"}, refused, false},
	} {
		f := workerFlags{login: c.login}
		err := f.unreached(c.err)
		if !errors.Is(err, c.err) || strings.Contains(err.Error(), "--token-file") != c.hint {
			t.Errorf("%+v, %v: got %v", c.login, c.err, err)
		}
	}
}
