package httptool

import (
	"errors"
	"net/url"
	"testing"
)

// An API in a private network does not open the addresses at which a cloud
// tells its machines their credentials.
func TestGuardOfAPrivateNetwork(t *testing.T) {
	for _, c := range []struct {
		configured, address string
		allowed             bool
	}{
		{"http://10.0.0.1", "127.0.0.1:80", true},
		{"http://10.0.0.1", "10.0.0.1:80", true},
		{"http://10.0.0.1", "169.254.169.254:80", false},
		{"http://10.0.0.1", "[::ffff:169.254.169.254]:80", false},
		{"http://10.0.0.1", "[fe80::1%eth0]:80", false},
		{"http://169.254.169.254/latest", "169.254.169.254:80", true},
		{"http://169.254.169.254/latest", "169.254.170.2:80", false},
		{"http://[fe80::1%25eth0]", "[fe80::1%eth0]:80", true},
	} {
		configured, err := url.Parse(c.configured)
		if err != nil {
			t.Fatal(err)
		}
		s, err := NewOpenAPI(OpenAPIConfig{Name: "a", Content: []byte("{}"), ServerURL: c.configured, Network: Network{AllowPrivate: true}})
		if err != nil {
			t.Fatal(err)
		}
		m := &Manifest{caller: newCaller(Network{AllowPrivate: true})}
		m.caller.name(configured)
		for what, caller := range map[string]*caller{"openapi": s.caller, "manifest": m.caller} {
			err := caller.guard("tcp", c.address, nil)
			var blocked *blockedError
			if (err == nil) != c.allowed || err != nil && !errors.As(err, &blocked) {
				t.Errorf("%s, %s is configured: %s: %v", what, c.configured, c.address, err)
			}
		}
	}
}

func TestPublicNetworkNamesNothing(t *testing.T) {
	c := newCaller(Network{})
	c.name(&url.URL{Host: "169.254.169.254"})
	if c.guard("tcp", "169.254.169.254:80", nil) == nil {
		t.Error("an address that is not public was allowed")
	}
}
