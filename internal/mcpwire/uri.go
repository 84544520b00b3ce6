package mcpwire

import (
	"path"
	"strings"
)

// NormalURI returns the normal form of a URI, in which two spellings of one
// resource are the same text: scheme and host in lower case, no escapes of
// characters that need none, the others in upper case, no dot segments, no
// fragment and no empty query. What is no URI is treated as if it were one.
func NormalURI(uri string) string { return normalURI(uri, unreserved) }

// ResourceKey is what resources are told apart by where one must not pass for
// another: the normal form without any escape, without empty segments, and
// without the slash that follows the host alone. It is no URI.
func ResourceKey(uri string) string {
	scheme, host, rest := splitURI(normalURI(uri, func(byte) bool { return true }))
	route, query, asks := strings.Cut(rest, "?")
	for strings.Contains(route, "//") {
		route = strings.ReplaceAll(route, "//", "/")
	}
	if scheme == "file:" && host == "//localhost" {
		host = "//"
	}
	if route == "/" {
		route = ""
	}
	if asks {
		query = "?" + query
	}
	return scheme + host + route + query
}

func normalURI(uri string, decoded func(byte) bool) string {
	uri, _, _ = strings.Cut(uri, "#")
	uri = strings.TrimSuffix(uri, "?")
	scheme, host, rest := splitURI(uri)
	route, query, asks := strings.Cut(rest, "?")
	route = withoutDots(unescape(route, decoded))
	if asks {
		route += "?" + unescape(query, decoded)
	}
	return strings.ToLower(scheme) + strings.ToLower(unescape(host, decoded)) + route
}

// splitURI returns the scheme with its colon, the authority with its slashes,
// and what follows.
func splitURI(uri string) (scheme, host, rest string) {
	if i := strings.IndexAny(uri, ":/?"); i > 0 && uri[i] == ':' {
		scheme, uri = uri[:i+1], uri[i+1:]
	}
	if !strings.HasPrefix(uri, "//") {
		return scheme, "", uri
	}
	end := strings.IndexAny(uri[2:], "/?")
	if end < 0 {
		return scheme, uri, ""
	}
	return scheme, uri[:end+2], uri[end+2:]
}

// withoutDots removes the dot segments of a path. A path without any is left as
// it is.
func withoutDots(route string) string {
	dotted := false
	for segment := range strings.SplitSeq(route, "/") {
		dotted = dotted || segment == "." || segment == ".."
	}
	if !dotted {
		return route
	}
	clean := path.Clean(route)
	if clean != "/" && (strings.HasSuffix(route, "/") || strings.HasSuffix(route, "/.") || strings.HasSuffix(route, "/..")) {
		clean += "/"
	}
	return clean
}

func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

// unescape decodes the escapes of the characters that decoded accepts, and
// writes the others in upper case.
func unescape(s string, decoded func(byte) bool) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		high, low := -1, -1
		if s[i] == '%' && i+2 < len(s) {
			high, low = hexDigit(s[i+1]), hexDigit(s[i+2])
		}
		if high < 0 || low < 0 {
			out.WriteByte(s[i])
			continue
		}
		if c := byte(high<<4 | low); decoded(c) {
			out.WriteByte(c)
		} else {
			out.WriteString(strings.ToUpper(s[i : i+3]))
		}
		i += 2
	}
	return out.String()
}

func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
