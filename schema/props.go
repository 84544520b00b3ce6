package schema

import "github.com/toolcrib/toolcrib/internal/rawjson"

// prop is a property that the schema names.
type prop struct {
	name     string
	key      string // the name in quotes; empty where JSON may spell it otherwise only
	node     *node  // what its value must satisfy; nil: anything
	declared bool   // under "properties", rather than only required
}

// propTable finds properties by name without allocation.
type propTable struct {
	list  []prop
	byKey map[string]int // while building, and for look-up in large tables
	slots []uint8        // open addressing over list, index plus one
}

// maxSlots is the size from which the map serves better than the slots.
const maxSlots = 64

func (t *propTable) mention(name string) int {
	if t.byKey == nil {
		t.byKey = map[string]int{}
	}
	if i, ok := t.byKey[name]; ok {
		return i
	}
	t.byKey[name] = len(t.list)
	t.list = append(t.list, prop{name: name, key: plainKey(name)})
	return len(t.list) - 1
}

// plainKey is a name as JSON has it, and empty for one that needs escapes.
func plainKey(name string) string {
	key := `"` + name + `"`
	if end, plain, fault := rawjson.ScanString([]byte(key), 0); fault != rawjson.FaultNone || !plain || end != len(key) {
		return ""
	}
	return key
}

func (t *propTable) declare(name string, n *node) {
	i := t.mention(name)
	t.list[i].node, t.list[i].declared = n, true
}

// index prepares the table for look-ups.
func (t *propTable) index() {
	if len(t.list) == 0 || len(t.list) > maxSlots {
		return
	}
	size := 8
	for size < 3*len(t.list) {
		size *= 2
	}
	t.slots = make([]uint8, size)
	for i, p := range t.list {
		slot := slotOf([]byte(p.name)) & (size - 1)
		for t.slots[slot] != 0 {
			slot = (slot + 1) & (size - 1)
		}
		t.slots[slot] = uint8(i + 1)
	}
}

func slotOf(key []byte) int {
	n := len(key)
	if n == 0 {
		return 0
	}
	return n*7 + int(key[0])*31 + int(key[n-1])*17 + int(key[n/2])*5
}

// find returns the index of the property, or -1.
func (t *propTable) find(key []byte) int {
	if len(t.slots) == 0 {
		if i, ok := t.byKey[string(key)]; ok {
			return i
		}
		return -1
	}
	mask := len(t.slots) - 1
	for slot := slotOf(key) & mask; t.slots[slot] != 0; slot = (slot + 1) & mask {
		if i := int(t.slots[slot]) - 1; t.list[i].name == string(key) {
			return i
		}
	}
	return -1
}

// isAt reports whether the key at offset i of a document is that of property p,
// free of escapes.
func (t *propTable) isAt(p int, doc []byte, i int) bool {
	if p >= len(t.list) {
		return false
	}
	key := t.list[p].key
	return key != "" && len(doc)-i > len(key) && string(doc[i:i+len(key)]) == key
}

// inlineProps is how many properties a set of seen ones holds without
// allocation.
const inlineProps = 256

// propSet is a set of indexes into a propTable.
type propSet struct {
	next  int // after the one that was added last
	first [inlineProps / 64]uint64
	rest  []uint64
}

func (s *propSet) word(i int, size int) (*uint64, uint64) {
	bit := uint64(1) << (i % 64)
	if i < inlineProps {
		return &s.first[i/64], bit
	}
	if s.rest == nil {
		s.rest = make([]uint64, (size-inlineProps+63)/64)
	}
	return &s.rest[(i-inlineProps)/64], bit
}

// add adds i to a set over size properties and reports whether it was new.
func (s *propSet) add(i, size int) bool {
	s.next = i + 1
	word, bit := s.word(i, size)
	added := *word&bit == 0
	*word |= bit
	return added
}

func (s *propSet) has(i int) bool {
	if i < inlineProps {
		return s.first[i/64]&(1<<(i%64)) != 0
	}
	return s.rest != nil && s.rest[(i-inlineProps)/64]&(1<<(i%64)) != 0
}
