package subset

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// allows reports whether a key may be used as it is.
func (r KeyRule) allows(key string) bool {
	if r.Marks == "" {
		return true
	}
	if key == "" || len(key) > r.Max || r.Word && !letter(key[0]) && key[0] != '_' {
		return false
	}
	for i := range len(key) {
		if !r.allowsByte(key[i]) {
			return false
		}
	}
	return true
}

func (r KeyRule) allowsByte(c byte) bool {
	if letter(c) || c >= '0' && c <= '9' {
		return true
	}
	for i := range len(r.Marks) {
		if r.Marks[i] == c {
			return true
		}
	}
	return false
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// keyMap is the bijection between the keys of one schema and those that the
// provider takes. It holds only keys that differ.
type keyMap struct {
	toWire, toOwn map[string]string
}

// newKeyMap maps the keys that the rule refuses, the same on every run. What a
// key is mapped to depends on all the keys of the schema, so that one key is
// mapped in the same way wherever it stands.
func newKeyMap(rule KeyRule, keys map[string]bool) *keyMap {
	m := &keyMap{toWire: map[string]string{}, toOwn: map[string]string{}}
	if rule.Marks == "" {
		return m
	}
	var refused []string
	for key := range keys {
		if !rule.allows(key) {
			refused = append(refused, key)
		}
	}
	slices.Sort(refused)
	for _, key := range refused {
		wire := rule.rename(key)
		for keys[wire] || m.isWire(wire) {
			wire = rule.suffixed(wire, key)
		}
		m.toWire[key], m.toOwn[wire] = wire, key
	}
	return m
}

// rename returns the key with its odd characters replaced, and a hash of the
// whole where much was lost.
func (r KeyRule) rename(key string) string {
	out := make([]byte, 0, len(key))
	for i := range len(key) {
		switch {
		case r.allowsByte(key[i]):
			out = append(out, key[i])
		case key[i] < 0x80:
			out = append(out, '_')
		}
	}
	if len(out) == 0 || r.Word && !letter(out[0]) && out[0] != '_' {
		out = append([]byte{'_'}, out...)
	}
	if len(out) > r.Max || len(out) < len(key) {
		return r.suffixed(string(out), key)
	}
	return string(out)
}

// suffixed returns wire, cut to make room, with a hash of key.
func (r KeyRule) suffixed(wire, key string) string {
	sum := sha256.Sum256([]byte(wire + "\x00" + key))
	if len(wire) > r.Max-9 {
		wire = wire[:r.Max-9]
	}
	return wire + "_" + hex.EncodeToString(sum[:4])
}

// isWire reports whether a key was mapped to wire.
func (m *keyMap) isWire(wire string) bool {
	_, ok := m.toOwn[wire]
	return ok
}

func (m *keyMap) wire(key string) string {
	if wire, ok := m.toWire[key]; ok {
		return wire
	}
	return key
}

func (m *keyMap) own(key string) string {
	if own, ok := m.toOwn[key]; ok {
		return own
	}
	return key
}
