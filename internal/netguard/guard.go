// Package netguard keeps outgoing connections away from addresses that are not
// part of the public internet, such as those of a cloud's metadata service.
//
// A [Policy] judges an address when it is dialled, after name resolution, so
// that no name can stand for a private address.
package netguard

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
)

// The kinds of address that are not public and that a Policy can allow.
const (
	loopback = "loopback"
	private  = "private"
)

// LinkLocal is a kind of address that no Policy allows: what clouds tell their
// machines, credentials among it, is found there.
const LinkLocal = "link-local"

// Policy says which addresses beside the public ones may be reached. The zero
// value allows none.
type Policy struct {
	// Loopback allows the addresses of this machine.
	Loopback bool
	// Private allows every address but link-local ones, those of this machine
	// too.
	Private bool
}

// LoopbackOnly is a net.Dialer.Control that refuses every address but those of
// this machine.
func LoopbackOnly(_, address string, _ syscall.RawConn) error {
	addr, err := parse(address)
	if err != nil || addr.IsLoopback() {
		return err
	}
	return &BlockedError{Target: addr.String(), Kind: "not loopback"}
}

// Control is a net.Dialer.Control that refuses what p does not allow, with a
// *BlockedError.
func (p Policy) Control(_, address string, _ syscall.RawConn) error {
	addr, err := parse(address)
	if err != nil {
		return err
	}
	return p.judge(addr.String(), Kind(addr))
}

// Host returns a *BlockedError when it is known without name resolution that
// host, as it stands in a URL without its port, is not allowed.
func (p Policy) Host(host string) error { return p.judge(host, HostKind(host)) }

func (p Policy) judge(target, kind string) error {
	if kind == "" || p.Private && kind != LinkLocal || p.Loopback && kind == loopback {
		return nil
	}
	return &BlockedError{Target: target, Kind: kind}
}

// BlockedError says that a connection was refused before it was made, because
// of where it would have gone.
type BlockedError struct {
	// Target is the address or host.
	Target string
	// Kind says what is wrong with it: "loopback", "private", "link-local", …
	Kind string
}

func (e *BlockedError) Error() string { return fmt.Sprintf("%s is %s", e.Target, e.Kind) }

func parse(address string) (netip.Addr, error) {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("cannot tell where %q is: %w", address, err)
	}
	return ap.Addr().Unmap().WithZone(""), nil
}

// block is a range of addresses that is not part of the public internet.
type block struct {
	prefix netip.Prefix
	kind   string
}

// reserved lists the ranges that netip.Addr has no method for, from the IANA
// registries of special-purpose addresses. IPv6 ranges that embed an IPv4
// address are refused whole: what they translate to is not known here.
var reserved = []block{
	{netip.MustParsePrefix("0.0.0.0/8"), "reserved"},
	{netip.MustParsePrefix("100.64.0.0/10"), "shared address space"},
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved"},
	{netip.MustParsePrefix("198.18.0.0/15"), "reserved for benchmarks"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},
	{netip.MustParsePrefix("64:ff9b::/96"), "translated to IPv4"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "translated to IPv4"},
	{netip.MustParsePrefix("2001::/32"), "translated to IPv4"},
	{netip.MustParsePrefix("2002::/16"), "translated to IPv4"},
	{netip.MustParsePrefix("fec0::/10"), "site-local"},
}

// Kind says what kind of non-public address a is, or "" for a public one.
func Kind(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	switch {
	case a.IsLoopback():
		return loopback
	case a.IsPrivate():
		return private
	case a.IsLinkLocalUnicast(), a.IsLinkLocalMulticast(), a.IsInterfaceLocalMulticast():
		return LinkLocal
	case a.IsUnspecified():
		return "unspecified"
	case a.IsMulticast():
		return "multicast"
	}
	for _, b := range reserved {
		if b.prefix.Contains(a) {
			return b.kind
		}
	}
	return ""
}

// HostKind is Kind for a host as it stands in a URL, without its port. A name
// that must be resolved gives "".
func HostKind(host string) string {
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return loopback
	}
	if a, err := netip.ParseAddr(name); err == nil {
		return Kind(a)
	}
	return ""
}

// Origin returns scheme, host and port of a URL, spelled in one way.
func Origin(u *url.URL) string {
	scheme, port := strings.ToLower(u.Scheme), u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[scheme]
	}
	return scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}
