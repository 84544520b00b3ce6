package rawjson

import (
	"bytes"
	"hash/maphash"
	"math"
)

// A KeySet finds duplicate keys while a document is walked. Objects open and
// close as they nest, so one set serves a whole document; it keeps its memory
// for the next. Keys are compared after their escapes are resolved. A KeySet is
// for one goroutine.
type KeySet struct {
	doc    []byte
	keys   []keyRef
	arena  []byte
	tables []keyTable
	seed   maphash.Seed
	seeded bool
}

// keyRef is a key without quotes: a range of the document or, when it had
// escapes, of the arena.
type keyRef struct {
	off   uint32
	size  uint32
	arena bool
}

// linearKeys is how many keys of one object are compared one by one before a
// hash table takes over.
const linearKeys = 16

// keptKeys bounds the memory that a set keeps between documents.
const keptKeys = 1 << 12

// Reset prepares the set for doc. No document above 4 GiB can be tracked; for
// one Reset reports false.
func (s *KeySet) Reset(doc []byte) bool {
	if cap(s.keys) > keptKeys || cap(s.arena) > 16*keptKeys {
		*s = KeySet{seed: s.seed, seeded: s.seeded}
	}
	s.doc, s.keys, s.arena, s.tables = doc, s.keys[:0], s.arena[:0], s.tables[:0]
	return uint64(len(doc)) <= math.MaxUint32
}

// Open starts an object and returns its mark, which Add and Close take.
func (s *KeySet) Open() int { return len(s.keys) }

// Close ends the object with the given mark, the last one opened.
func (s *KeySet) Close(mark int) {
	s.keys = s.keys[:mark]
	if n := len(s.tables); n > 0 && s.tables[n-1].mark == mark {
		s.tables = s.tables[:n-1]
	}
}

// Add records the key whose quotes span [start, end) in the document, and
// reports whether the object did not hold it before. plain says that the key
// has no escapes.
func (s *KeySet) Add(mark, start, end int, plain bool) bool {
	ref := keyRef{off: uint32(start + 1), size: uint32(end - start - 2)}
	if !plain {
		ref = s.unescape(start, end)
	}
	if len(s.keys)-mark >= linearKeys {
		return s.addHashed(mark, ref)
	}
	key := s.bytes(ref)
	for _, other := range s.keys[mark:] {
		if other.size == ref.size && bytes.Equal(s.bytes(other), key) {
			return false
		}
	}
	s.keys = append(s.keys, ref)
	return true
}

func (s *KeySet) unescape(start, end int) keyRef {
	off := len(s.arena)
	s.arena = appendUnescaped(s.arena, s.doc[start+1:end-1])
	return keyRef{off: uint32(off), size: uint32(len(s.arena) - off), arena: true}
}

func (s *KeySet) bytes(r keyRef) []byte {
	if r.arena {
		return s.arena[r.off : r.off+r.size]
	}
	return s.doc[r.off : r.off+r.size]
}

// keyTable is an open-addressing index over the keys of one large object.
type keyTable struct {
	mark  int
	slots []uint32 // index into KeySet.keys relative to mark, plus one
}

func (s *KeySet) addHashed(mark int, ref keyRef) bool {
	t := s.table(mark)
	if slot := s.find(t, ref); t.slots[slot] != 0 {
		return false
	}
	s.keys = append(s.keys, ref)
	if n := len(s.keys) - mark; 2*n > len(t.slots) {
		s.rehash(t, 4*len(t.slots))
	} else {
		t.slots[s.find(t, ref)] = uint32(n)
	}
	return true
}

// table returns the table of the object with the given mark, which is the last
// one opened that has a table, and builds it when it has none yet.
func (s *KeySet) table(mark int) *keyTable {
	n := len(s.tables)
	if n > 0 && s.tables[n-1].mark == mark {
		return &s.tables[n-1]
	}
	if !s.seeded {
		s.seed, s.seeded = maphash.MakeSeed(), true
	}
	s.tables = append(s.tables, keyTable{mark: mark})
	t := &s.tables[n]
	s.rehash(t, 4*linearKeys)
	return t
}

func (s *KeySet) rehash(t *keyTable, size int) {
	t.slots = make([]uint32, size)
	for i, ref := range s.keys[t.mark:] {
		t.slots[s.find(t, ref)] = uint32(i) + 1
	}
}

// find returns the slot that holds ref's key, or the free one where it belongs.
func (s *KeySet) find(t *keyTable, ref keyRef) int {
	key := s.bytes(ref)
	mask := len(t.slots) - 1
	slot := int(maphash.Bytes(s.seed, key)) & mask
	for t.slots[slot] != 0 {
		other := s.keys[t.mark+int(t.slots[slot])-1]
		if other.size == ref.size && bytes.Equal(s.bytes(other), key) {
			return slot
		}
		slot = (slot + 1) & mask
	}
	return slot
}
