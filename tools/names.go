package tools

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// The bounds of canonical names, in bytes.
const (
	maxName       = 128
	maxStrictName = 64
	hashSuffix    = 8 // hex digits
)

// CheckName returns an error that says what is wrong when name is not
// canonical: 1 to 128 characters of A–Z, a–z, 0–9, underscore, dot and dash.
func CheckName(name string) error {
	if name == "" {
		return fmt.Errorf("a tool name must not be empty")
	}
	if len(name) > maxName {
		return fmt.Errorf("tool name %q… has %d bytes: at most %d are allowed", truncate(name, 32), len(name), maxName)
	}
	for i := range len(name) {
		if !nameByte(name[i]) {
			return fmt.Errorf("tool name %q: only A-Z, a-z, 0-9, '_', '.' and '-' are allowed", name)
		}
	}
	return nil
}

func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.' || c == '-'
}

// StrictNames is CheckName for catalogs whose names stay short and of one form:
// ASCII snake_case segments separated by dots, at most 64 bytes. Providers whose
// names hold no dots, such as OpenAI and Anthropic, are told such a name with
// another separator in the place of each dot, such as two underscores, and what
// they answer is mapped back.
func StrictNames(name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if len(name) > maxStrictName {
		return fmt.Errorf("tool name %q has %d bytes: strict names have at most %d", name, len(name), maxStrictName)
	}
	for segment := range strings.SplitSeq(name, ".") {
		if !snakeCase(segment) {
			return fmt.Errorf("tool name %q: strict names are snake_case segments separated by dots", name)
		}
	}
	return nil
}

func snakeCase(s string) bool {
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_') {
			return false
		}
	}
	return true
}

// CanonicalName maps a name that a source gave to a canonical one, the same on
// every run. A name that fits is kept, behind prefix. In any other, characters
// that are not allowed become underscores, and a hash of the whole name is
// appended so that two names never become one. An empty source name has no
// canonical name, and gives "".
func CanonicalName(prefix, source string) string {
	if source == "" {
		return ""
	}
	name := prefix + source
	if CheckName(name) == nil {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	mapped := []byte(strings.Map(mapRune, name))
	if len(mapped) > maxName-hashSuffix-1 {
		mapped = mapped[:maxName-hashSuffix-1]
	}
	return string(mapped) + "_" + hex.EncodeToString(sum[:])[:hashSuffix]
}

func mapRune(r rune) rune {
	if r < 0x80 && nameByte(byte(r)) {
		return r
	}
	return '_'
}

// namespaceOf returns what stands before the last dot of a name.
func namespaceOf(name string) string {
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		return name[:i]
	}
	return ""
}
