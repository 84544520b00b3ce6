package mcpwire

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// checkOrigin refuses requests that a web page of another origin may have made
// a browser send. On a loopback address that includes every Host which is no
// name of loopback, since a page can have its own name resolve there (DNS
// rebinding).
func (s *Server) checkOrigin(r *http.Request) *Refusal {
	local := servedOnLoopback(r)
	host := hostName(r.Host)
	if local && !isLoopback(host) && !allowed(s.opts.AllowedHosts, host) {
		return &Refusal{Status: http.StatusForbidden, Message: "forbidden: this Host is not served on a loopback address"}
	}
	if !local && len(s.opts.AllowedHosts) > 0 && !isLoopback(host) && !allowed(s.opts.AllowedHosts, host) {
		return &Refusal{Status: http.StatusForbidden, Message: "forbidden: this Host is not served here"}
	}
	for _, origin := range r.Header.Values("Origin") { // Several are from no browser, and none may be foreign.
		if !s.acceptsOrigin(r, origin, local) {
			return &Refusal{Status: http.StatusForbidden, Message: "forbidden: requests from this Origin are not accepted"}
		}
	}
	return nil
}

func (s *Server) acceptsOrigin(r *http.Request, origin string, local bool) bool {
	if origin == "" || allowed(s.opts.AllowedOrigins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && (u.Host == r.Host || local && isLoopback(u.Hostname()))
}

func allowed(list []string, v string) bool {
	return slices.ContainsFunc(list, func(a string) bool { return a == "*" || strings.EqualFold(a, v) })
}

// servedOnLoopback reports whether the request came in on a loopback address.
func servedOnLoopback(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && addr != nil && isLoopback(hostName(addr.String()))
}

func hostName(hostport string) string {
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		return h
	}
	return strings.Trim(hostport, "[]")
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
