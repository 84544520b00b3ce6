package httptool

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"

	"github.com/toolcrib/toolcrib/internal/netguard"
)

// A blockedError says that a connection was refused before it was made,
// because of where it would have gone.
type blockedError struct {
	addr    netip.Addr
	what    string
	private bool // although allow_private is set
}

func (e *blockedError) Error() string {
	if e.private {
		return fmt.Sprintf("the address %s is %s and is called only where the configuration itself names it", e.addr, e.what)
	}
	return fmt.Sprintf("the address %s is %s and is not called unless allow_private is set", e.addr, e.what)
}

// guard is a net.Dialer.Control: it sees the address after name resolution,
// so no name can stand for a private address.
func (c *caller) guard(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("cannot tell where %q is: %w", address, err)
	}
	if c.private {
		return c.judgeLinkLocal(ap.Addr())
	}
	if what := netguard.Kind(ap.Addr()); what != "" {
		return &blockedError{addr: ap.Addr().Unmap(), what: what}
	}
	return nil
}

// linkLocal is a kind of address that allow_private does not open: what clouds
// tell their machines, credentials among it, is found there.
const linkLocal = netguard.LinkLocal

// named are the link-local addresses that the configuration names.
type named struct{ addrs sync.Map }

// name opens the link-local address that the configuration has for a host.
func (c *caller) name(u *url.URL) {
	if a, err := netip.ParseAddr(u.Hostname()); err == nil && netguard.Kind(a) == linkLocal {
		c.named.addrs.Store(a.Unmap().WithZone(""), true)
	}
}

func (c *caller) judgeLinkLocal(a netip.Addr) error {
	a = a.Unmap().WithZone("")
	if netguard.Kind(a) != linkLocal {
		return nil
	}
	if _, ok := c.named.addrs.Load(a); ok {
		return nil
	}
	return &blockedError{addr: a, what: linkLocal, private: true}
}

// checkLinkLocal refuses the URL of a link-local address that the configuration
// does not name. A proxy, for one, would call it without this process dialling
// it.
func (c *caller) checkLinkLocal(u *url.URL) error {
	a, err := netip.ParseAddr(strings.TrimSuffix(u.Hostname(), "."))
	if err != nil || !c.private { // the guard will see it
		return nil
	}
	return c.judgeLinkLocal(a)
}

// checkFound is checkTarget for a URL that stands in a document, and not in the
// configuration.
func (c *caller) checkFound(u *url.URL) error {
	if err := checkTarget(u, c.private); err != nil {
		return err
	}
	return c.checkLinkLocal(u)
}

// checkTarget refuses a URL that can never be called: another scheme than
// HTTP, no host, a user name in it, or a private host without allow.
func checkTarget(u *url.URL, allowPrivate bool) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("the URL has the scheme %q: expected http or https", u.Scheme)
	case u.Hostname() == "":
		return fmt.Errorf("the URL has no host")
	case u.User != nil:
		return fmt.Errorf("the URL holds a user name or password: give credentials by auth")
	}
	if what := netguard.HostKind(u.Hostname()); what != "" && !allowPrivate {
		return privateHostError(fmt.Sprintf("the host %s is %s: set allow_private to call it", u.Hostname(), what))
	}
	return nil
}

// ErrPrivateHost is found by errors.Is in the reason why an operation was
// refused whose server is on this machine or in a private network, as long as
// Network.AllowPrivate is not set.
var ErrPrivateHost = errors.New("httptool: the host is not public")

type privateHostError string

func (e privateHostError) Error() string { return string(e) }

func (e privateHostError) Is(target error) bool { return target == ErrPrivateHost }
