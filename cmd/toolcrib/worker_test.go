package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/provider"
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

// An API near the worker is called when the flag says so, which is about nothing else.
func TestWorkerAllowsPrivate(t *testing.T) {
	for _, private := range []bool{false, true} {
		f := workerFlags{toolset: "pets", openapi: "https://pets.example/openapi.json", private: private}
		cfg, err := f.configuration(nil)
		if err != nil || cfg.Tools.OpenAPI[0].AllowPrivate != private {
			t.Errorf("%v: got %+v, %v", private, cfg, err)
		}
	}
	f := workerFlags{toolset: "pets", config: "pets.yaml", private: true}
	f.options.MaxConcurrentToolCalls, f.connectWithin = 1, time.Second
	if err := f.complete(nil); err == nil || !strings.HasPrefix(err.Error(), "--allow-private: ") {
		t.Errorf("with a configuration: %v", err)
	}
}

// Whom a gateway turns away for its key hears which flag is missing, or which file
// holds the key that is not taken.
func TestRefusedNamesTheKey(t *testing.T) {
	key := func(text string) provider.Options { return provider.Options{Key: []byte(text)} }
	for _, c := range []struct {
		toolset string
		flags   workerFlags
		hint    string // what the error ends with
	}{
		{"post", workerFlags{}, "the worker has none; no --toolset-key-file was given"},
		{"post", workerFlags{keyFile: "post.key", options: key("old")}, "not that of the toolset; it is that in --toolset-key-file post.key"},
		{"post", workerFlags{options: key("old")}, "not that of the toolset; it is that in TOOLCRIB_TOOLSET_KEY"},
		{"shop", workerFlags{keyFile: "post.key", options: key("old")}, "not among those that this gateway admits"},
	} {
		a := &registry.Announcement{Toolset: c.toolset, Instance: "i"}
		if c.flags.options.Key != nil {
			if err := a.Sign(c.flags.options.Key); err != nil {
				t.Fatal(err)
			}
		}
		_, why := registry.AdmitKeys(map[string]registry.KeyGrant{"post": {Key: []byte("new")}})(t.Context(), a)
		err := c.flags.refused(fmt.Errorf("%w: %w", provider.ErrRefused, why))
		if !errors.Is(err, provider.ErrRefused) || !strings.HasSuffix(err.Error(), c.hint) {
			t.Errorf("%s, %q: got %v", c.toolset, c.flags.options.Key, err)
		}
	}
	if err := (&workerFlags{}).refused(nil); err != nil {
		t.Errorf("a worker that ended is told %v", err)
	}
}

// A file without a key is no worker without one.
func TestKeyFileIsEmpty(t *testing.T) {
	file := filepath.Join(t.TempDir(), "post.key")
	if err := os.WriteFile(file, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := workerFlags{keyFile: file}
	if err := f.readKey(); err == nil || err.Error() != "--toolset-key-file: "+file+" is empty" {
		t.Errorf("got %v", err)
	}
}
