package natsstream

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

const hexDigits = "0123456789ABCDEF"

// Token writes a name as one token of a NATS subject: letters, digits, '-' and
// '_' stay, a colon becomes '~', and every other byte '%' with two digits. It
// never returns the same token for two names.
func Token(name string) string {
	plain := true
	for i := 0; i < len(name) && plain; i++ {
		plain = isPlain(name[i])
	}
	if plain {
		return name
	}
	var b strings.Builder
	b.Grow(len(name) + 8)
	for i := range len(name) {
		switch c := name[i]; {
		case isPlain(c):
			b.WriteByte(c)
		case c == ':':
			b.WriteByte('~')
		default:
			b.Write([]byte{'%', hexDigits[c>>4], hexDigits[c&15]})
		}
	}
	return b.String()
}

// subjectOf writes a name as tokens of a NATS subject, one for each part of the
// name, so that wildcards of the server's permissions can stand for parts. An
// empty part becomes '%', which is no token of a part. It never returns the same
// tokens for two names.
func subjectOf(name string) string {
	subject := strings.ReplaceAll(Token(name), "~", ".")
	if subject[0] != '.' && subject[len(subject)-1] != '.' && !strings.Contains(subject, "..") {
		return subject
	}
	parts := strings.Split(subject, ".")
	for i, part := range parts {
		if part == "" {
			parts[i] = "%"
		}
	}
	return strings.Join(parts, ".")
}

func isPlain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

// FromToken returns the name that Token wrote as token, and an error for what
// Token never writes.
func FromToken(token string) (string, error) {
	name := make([]byte, 0, len(token))
	for i := 0; i < len(token); i++ {
		switch c := token[i]; {
		case isPlain(c):
			name = append(name, c)
		case c == '~':
			name = append(name, ':')
		case c == '%' && i+2 < len(token):
			high, low := strings.IndexByte(hexDigits, token[i+1]), strings.IndexByte(hexDigits, token[i+2])
			if high < 0 || low < 0 {
				return "", fmt.Errorf("natsstream: %q is not the token of a name: bad escape at byte %d", token, i)
			}
			name = append(name, byte(high<<4|low))
			i += 2
		default:
			return "", fmt.Errorf("natsstream: %q is not the token of a name: bad byte %d", token, i)
		}
	}
	if string(name) == "" || Token(string(name)) != token {
		return "", fmt.Errorf("natsstream: %q is not the token of a name", token)
	}
	return string(name), nil
}

// shortened returns a token of at most limit bytes, which JetStream bounds for
// what it uses as names of files. A long one ends with a digest after '=',
// which is no byte of a token.
func shortened(token string, limit int) string {
	if len(token) <= limit {
		return token
	}
	sum := sha256.Sum256([]byte(token))
	digest := hex.EncodeToString(sum[:16])
	return token[:limit-len(digest)-1] + "=" + digest
}
