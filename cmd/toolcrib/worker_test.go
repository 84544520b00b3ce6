package main

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/registry/stream/connect"
)

// Who is turned away hears which flag is missing, or holds what is not taken.
func TestUnreachedNamesTheToken(t *testing.T) {
	refused, gone := errors.New("nats: Authorization Violation"), errors.New("nats: no servers available")
	for _, c := range []struct {
		login connect.Options
		err   error
		hint  string // what the error ends with
	}{
		{connect.Options{}, refused, "; no --token-file was given"},
		{connect.Options{}, gone, gone.Error()},
		{connect.Options{TokenFile: "token"}, refused, "; the server takes another token than that in --token-file token"},
		{connect.Options{TokenFile: "token"}, gone, gone.Error()},
		{connect.Options{Token: "secret"}, refused, "; the server takes another token than that in TOOLCRIB_WORKERS_TOKEN"},
		{connect.Options{NKeyFile: "seed"}, refused, refused.Error()},
	} {
		f := workerFlags{login: c.login}
		err := f.unreached(c.err)
		if !errors.Is(err, c.err) || !strings.HasSuffix(err.Error(), c.hint) {
			t.Errorf("%+v, %v: got %v", c.login, c.err, err)
		}
	}
}

// A document that is no file ends the worker, and is not waited for.
func TestWorkerWithoutItsDocument(t *testing.T) {
	f := workerFlags{toolset: "pets", openapi: filepath.Join(t.TempDir(), "pets.json")}
	if _, err := f.configuration(nil); !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "--openapi: ") {
		t.Errorf("got %v", err)
	}
	f.openapi = "https://pets.example/openapi.json"
	if _, err := f.configuration(nil); err != nil {
		t.Error(err)
	}
}
