package netguard_test

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"testing"

	"github.com/toolcrib/toolcrib/internal/netguard"
)

func TestKind(t *testing.T) {
	for addr, want := range map[string]string{
		"1.1.1.1": "", "2606:4700::1111": "",
		"127.0.0.1": "loopback", "::1": "loopback", "::ffff:127.0.0.1": "loopback",
		"10.0.0.1": "private", "192.168.1.1": "private", "172.16.0.1": "private", "fd00::1": "private",
		"169.254.169.254": "link-local", "fe80::1%eth0": "link-local", "0.0.0.0": "unspecified",
		"100.64.0.1": "shared address space", "224.0.1.1": "multicast", "64:ff9b::a9fe:a9fe": "translated to IPv4",
		"255.255.255.255": "reserved", "fec0::1": "site-local",
	} {
		if got := netguard.Kind(netip.MustParseAddr(addr)); got != want {
			t.Errorf("Kind(%s) = %q, want %q", addr, got, want)
		}
	}
}

func TestHostKind(t *testing.T) {
	for host, want := range map[string]string{
		"example.com": "", "LOCALHOST.": "loopback", "a.localhost": "loopback", "127.0.0.1": "loopback", "10.1.2.3": "private", "::1": "loopback",
	} {
		if got := netguard.HostKind(host); got != want {
			t.Errorf("HostKind(%s) = %q, want %q", host, got, want)
		}
	}
}

func TestPolicies(t *testing.T) {
	for _, c := range []struct {
		policy  netguard.Policy
		address string
		allowed bool
	}{
		{netguard.Policy{}, "8.8.8.8:443", true},
		{netguard.Policy{}, "127.0.0.1:80", false},
		{netguard.Policy{}, "not an address", false},
		{netguard.Policy{Loopback: true}, "[::1]:80", true},
		{netguard.Policy{Loopback: true}, "10.0.0.1:80", false},
		{netguard.Policy{Private: true}, "10.0.0.1:80", true},
		{netguard.Policy{Private: true}, "169.254.169.254:80", false},
	} {
		if err := c.policy.Control("tcp", c.address, nil); (err == nil) != c.allowed {
			t.Errorf("%+v to %s: %v", c.policy, c.address, err)
		}
	}
	if err := netguard.LoopbackOnly("tcp", "8.8.8.8:80", nil); err == nil {
		t.Error("LoopbackOnly lets a public address pass")
	}
}

// The guard sees the address after name resolution: no name can stand for one.
func TestGuardSeesTheResolvedAddress(t *testing.T) {
	d := net.Dialer{Control: netguard.Policy{}.Control}
	_, err := d.DialContext(t.Context(), "tcp", "localhost:1")
	var blocked *netguard.BlockedError
	if !errors.As(err, &blocked) || blocked.Kind != "loopback" {
		t.Errorf("got %v", err)
	}
}

func TestOrigin(t *testing.T) {
	for in, want := range map[string]string{
		"https://Example.com/a": "https://example.com:443", "http://[::1]/": "http://[::1]:80", "https://example.com:8443": "https://example.com:8443",
	} {
		u, err := url.Parse(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := netguard.Origin(u); got != want {
			t.Errorf("Origin(%s) = %s, want %s", in, got, want)
		}
	}
}
