package schema

import (
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"
)

// isReference reports whether s is a URI reference (RFC 3986) of characters
// that are allowed beside the reserved ones; absolute asks for a scheme.
func isReference(s string, allowed func(c rune) bool, absolute bool) bool {
	for i, c := range s {
		switch {
		case c == '%':
			if len(s) < i+3 || !isHex(s[i+1]) || !isHex(s[i+2]) {
				return false
			}
		case c == utf8.RuneError || !allowed(c) && !strings.ContainsRune(":/?#[]@!$&'()*+,;=", c):
			return false
		}
	}
	scheme, rest := cutScheme(s)
	if absolute && scheme == "" {
		return false
	}
	authority, rest := cutAuthority(rest)
	if scheme == "" && authority == "" && strings.ContainsRune(firstSegment(rest), ':') {
		return false
	}
	return isAuthority(authority) && !strings.ContainsAny(rest, "[]") && strings.Count(rest, "#") <= 1
}

// cutScheme splits the scheme from what follows its colon. Without one all of s
// is the rest.
func cutScheme(s string) (scheme, rest string) {
	scheme, rest, ok := strings.Cut(s, ":")
	if !ok || scheme == "" || !isLetter(scheme[0]) {
		return "", s
	}
	for _, c := range []byte(scheme) {
		if !isLetter(c) && c-'0' > 9 && strings.IndexByte("+-.", c) < 0 {
			return "", s
		}
	}
	return scheme, rest
}

func isLetter(c byte) bool { return c|0x20-'a' <= 25 }

// firstSegment returns the first part of a path.
func firstSegment(s string) string {
	if end := strings.IndexAny(s, "/?#"); end >= 0 {
		return s[:end]
	}
	return s
}

// cutAuthority splits what follows the scheme.
func cutAuthority(s string) (authority, rest string) {
	after, ok := strings.CutPrefix(s, "//")
	if !ok {
		return "", s
	}
	authority = firstSegment(after)
	return authority, after[len(authority):]
}

// isAuthority reports whether s is [userinfo "@"] host [":" port].
func isAuthority(s string) bool {
	user, host, ok := strings.Cut(s, "@")
	if !ok {
		user, host = "", s
	}
	if strings.ContainsAny(user, "[]@") || strings.Contains(host, "@") {
		return false
	}
	if literal, ok := strings.CutPrefix(host, "["); ok {
		address, port, ok := strings.Cut(literal, "]")
		return ok && isLiteral(address) && (port == "" || port[0] == ':' && isDigits(port[1:]))
	}
	_, port, _ := strings.Cut(host, ":")
	return isDigits(port) && !strings.ContainsAny(host, "[]")
}

// isLiteral reports whether s can stand in brackets as a host: an IPv6 address,
// or one of a version to come.
func isLiteral(s string) bool {
	if future, ok := strings.CutPrefix(strings.ToLower(s), "v"); ok {
		version, address, ok := strings.Cut(future, ".")
		return ok && version != "" && strings.Trim(version, "0123456789abcdef") == "" && address != ""
	}
	return isIPv6(s)
}

// uriCharacter reports whether c is an unreserved character of RFC 3986.
func uriCharacter(c rune) bool {
	return c < utf8.RuneSelf && (unicode.IsLetter(c) || unicode.IsDigit(c) || strings.ContainsRune("-._~", c))
}

// iriCharacter reports whether c is an unreserved character of RFC 3987.
func iriCharacter(c rune) bool { return uriCharacter(c) || c >= 0xa0 && !unicode.IsControl(c) }

// isHostname reports whether s is a host name of RFC 1123, whose labels in
// Punycode say something.
func isHostname(s string) bool {
	if s == "" || len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if !isLabel(label) {
			return false
		}
	}
	return true
}

func isLabel(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for _, c := range []byte(s) {
		if c != '-' && c-'0' > 9 && !isLetter(c) {
			return false
		}
	}
	return true
}

// isEmail reports whether s is a Mailbox of RFC 5321.
func isEmail(s string) bool {
	at := strings.LastIndexByte(s, '@')
	if at < 0 || len(s) > 254 || at > 64 {
		return false
	}
	user, host := s[:at], s[at+1:]
	if literal, ok := strings.CutPrefix(host, "["); ok {
		if literal, ok = strings.CutSuffix(literal, "]"); !ok || !isMailAddress(literal) {
			return false
		}
	} else if !isHostname(host) {
		return false
	}
	if len(user) > 1 && user[0] == '"' && user[len(user)-1] == '"' {
		return isQuoted(user[1 : len(user)-1])
	}
	for atom := range strings.SplitSeq(user, ".") {
		if atom == "" || strings.ContainsFunc(atom, notInAtom) {
			return false
		}
	}
	return true
}

func isMailAddress(s string) bool {
	if ip, ok := strings.CutPrefix(s, "IPv6:"); ok {
		return isIPv6(ip)
	}
	addr, err := netip.ParseAddr(s)
	return err == nil && addr.Is4()
}

func notInAtom(c rune) bool {
	return !(c < utf8.RuneSelf && (unicode.IsLetter(c) || unicode.IsDigit(c) || strings.ContainsRune("!#$%&'*+-/=?^_`{|}~", c)))
}

// isQuoted reports whether s can stand in quotes before the @ of an address.
func isQuoted(s string) bool {
	for i := 0; i < len(s); i++ {
		escaped := s[i] == '\\'
		if escaped {
			i++
		}
		if i == len(s) || s[i] < ' ' || s[i] > '~' || s[i] == '"' && !escaped {
			return false
		}
	}
	return true
}
