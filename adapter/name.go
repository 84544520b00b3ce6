package adapter

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
)

// A nameRule says which names a provider takes for tools.
type nameRule struct {
	marks    string // characters beside letters and digits
	max      int    // bytes
	word     bool   // a name starts with a letter or an underscore
	reserved string // a name that the provider's own tool has
}

func (r nameRule) allows(name string) bool {
	if name == "" || name == r.reserved || len(name) > r.max || r.word && !letter(name[0]) && name[0] != '_' {
		return false
	}
	for i := range len(name) {
		if c := name[i]; !letter(c) && !digit(c) && strings.IndexByte(r.marks, c) < 0 {
			return false
		}
	}
	return true
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func digit(c byte) bool  { return c >= '0' && c <= '9' }

// wireNames maps canonical names to what the provider is shown, each to one of
// its own. A name that fits is kept; dots become two underscores where that can
// be told from any other name; everything else gets a hash of the name. The map
// depends on the set of names alone.
func (r nameRule) wireNames(canonical []string) map[string]string {
	wires := make(map[string]string, len(canonical))
	taken := make(map[string]bool, len(canonical))
	var rest []string
	for _, name := range canonical {
		if r.allows(name) {
			wires[name], taken[name] = name, true
		} else {
			rest = append(rest, name)
		}
	}
	slices.Sort(rest)
	for _, name := range slices.Compact(rest) {
		wire, ok := r.spelled(name)
		for try := 0; !ok || taken[wire]; try++ {
			wire, ok = r.hashed(name, try), true
		}
		wires[name], taken[wire] = wire, true
	}
	return wires
}

// spelled returns the name with "__" for each dot, and whether the dots can be
// found again and the provider takes it.
func (r nameRule) spelled(name string) (string, bool) {
	for segment := range strings.SplitSeq(name, ".") {
		if segment == "" || segment[0] == '_' || segment[len(segment)-1] == '_' || strings.Contains(segment, "__") {
			return "", false
		}
	}
	wire := strings.ReplaceAll(name, ".", "__")
	return wire, r.allows(wire)
}

// hashDigits is how many hex digits of a hash a name ends with.
const hashDigits = 8

// hashed returns what can be kept of the name, and a hash of it. Each try gives
// another one, for names that somebody else has already, by chance or to be
// mistaken for them.
func (r nameRule) hashed(name string, try int) string {
	kept := []byte(name)
	for i, c := range kept {
		if !letter(c) && !digit(c) && strings.IndexByte(r.marks, c) < 0 {
			kept[i] = '_'
		}
	}
	if r.word && len(kept) > 0 && !letter(kept[0]) && kept[0] != '_' {
		kept = append([]byte{'_'}, kept...)
	}
	kept = kept[:min(len(kept), r.max-hashDigits-1)]
	if try > 0 {
		name += "\x00" + strconv.Itoa(try)
	}
	sum := sha256.Sum256([]byte(name))
	return string(kept) + "_" + hex.EncodeToString(sum[:hashDigits/2])
}
