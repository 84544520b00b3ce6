package provider_test

import (
	"net/url"
	"path/filepath"
	"testing"

	"github.com/toolcrib/toolcrib/registry/provider"
	"github.com/toolcrib/toolcrib/registry/stream/natsserver"
	"github.com/toolcrib/toolcrib/registry/stream/natsstream"
)

// A gateway that is started again with the stream server in its process knows its
// workers once they are connected, and not only when they have missed its pings.
func TestGatewayStartsAgainWithItsStreamServer(t *testing.T) {
	opts := quick()
	opts.StaleAfter = 2 * patience // and so does the worker wait for a ping
	c := newCrib(t, opts)
	u, err := url.Parse(c.server.URL())
	if err != nil {
		t.Fatal(err)
	}
	again := &natsserver.Options{Address: u.Host, Token: c.server.Token()}
	client, err := natsstream.Dial(t.Context(), c.server.URL(), &natsstream.Options{Token: c.server.Token()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.check(client.Close()) })
	c.serveOn(client, "demo", serving(echo), provider.Options{})
	c.up("demo", 1)

	c.close(c.reg)
	c.check(c.client.Close())
	c.check(c.server.Close())
	if c.server, err = natsserver.Start(filepath.Join(t.TempDir(), "streams"), again); err != nil {
		t.Fatal(err)
	}
	c.client = c.connect()
	c.open(opts)
	c.up("demo", 1)
	if _, err := c.call(caller(t), "demo.write", `{}`); err != nil {
		t.Error(err)
	}
}
