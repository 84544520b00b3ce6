package rawjson

// End returns the offset after the value that starts at or after offset i, with
// white space before it skipped. The error is a [*SyntaxError].
func End(b []byte, i int) (int, error) {
	end, fault := skip(b, SkipSpace(b, i))
	if fault != FaultNone {
		return end, NewError(b, end, fault)
	}
	return end, nil
}

// Trim returns v without the white space around it.
func Trim(v []byte) []byte {
	v = v[SkipSpace(v, 0):]
	for len(v) > 0 && isSpace(v[len(v)-1]) {
		v = v[:len(v)-1]
	}
	return v
}

// An Iter walks the members of an object or the elements of an array:
//
//	it := rawjson.Object(v)
//	for it.Next() {
//		use(it.Key(), it.Value())
//	}
//	if err := it.Err(); err != nil { … }
//
// What it returns points into the document. An Iter is for one goroutine.
type Iter struct {
	b        []byte
	next     int
	keyStart int
	keyEnd   int
	valStart int
	valEnd   int
	fault    Fault
	closing  byte
	plain    bool
	started  bool
	done     bool
}

// Object returns an iterator over the members of the object that v starts with.
// When v is no object there are none and Err says so.
func Object(v []byte) Iter { return newIter(v, '{', '}') }

// Array returns an iterator over the elements of the array that v starts with.
// When v is no array there are none and Err says so.
func Array(v []byte) Iter { return newIter(v, '[', ']') }

func newIter(v []byte, opening, closing byte) Iter {
	it := Iter{b: v, closing: closing, next: SkipSpace(v, 0)}
	switch {
	case it.next >= len(v):
		it.fault = FaultEnd
	case v[it.next] != opening:
		it.fault = FaultValue
	}
	return it
}

// Next steps to the next member or element and reports whether there is one.
// Its value has then been checked to be well-formed.
func (it *Iter) Next() bool { return it.Step() && it.Skip() }

// Step is Next for a caller that reads the value itself, or calls Skip: it may
// read the elements of a long array where they stand, instead of going over them
// twice. Of the value only the beginning is known then.
func (it *Iter) Step() bool {
	if it.done || it.fault != FaultNone {
		return false
	}
	if !it.started {
		it.started = true
		it.next, it.done, it.fault = FirstElement(it.b, it.next, it.closing)
	} else {
		it.next, it.done, it.fault = NextElement(it.b, it.next, it.closing)
	}
	if it.done || it.fault != FaultNone {
		return false
	}
	it.valStart = it.next
	if it.closing == '}' {
		it.keyStart = it.next
		it.keyEnd, it.valStart, it.plain, it.fault = ScanKey(it.b, it.next)
		if it.fault != FaultNone {
			it.next = it.valStart
			return false
		}
	}
	return true
}

// Skip reads the value to which Step led, and reports whether it is well-formed.
func (it *Iter) Skip() bool {
	it.valEnd, it.fault = skip(it.b, it.valStart)
	it.next = it.valEnd
	return it.fault == FaultNone
}

// Elements returns an iterator over the array to which Step led. When that has
// come to the end without an error, Take goes on behind it.
func (it *Iter) Elements() Iter { return Array(it.b[it.valStart:]) }

// Take takes what was read of Elements for the value.
func (it *Iter) Take(elements *Iter) {
	it.valEnd = it.valStart + elements.next
	it.next = it.valEnd
}

// RawKey returns the current member's key as it stands, with its quotes.
func (it *Iter) RawKey() []byte { return it.b[it.keyStart:it.keyEnd] }

// Key returns the current member's key with its escapes resolved.
func (it *Iter) Key() string {
	raw := it.b[it.keyStart+1 : it.keyEnd-1]
	if it.plain {
		return string(raw)
	}
	return string(appendUnescaped(nil, raw))
}

// KeyIs reports whether the current member's key, with its escapes resolved,
// is key.
func (it *Iter) KeyIs(key string) bool {
	raw := it.b[it.keyStart+1 : it.keyEnd-1]
	if it.plain {
		return string(raw) == key
	}
	return len(raw) > len(key) && string(appendUnescaped(nil, raw)) == key
}

// Value returns the current value, without white space around it.
func (it *Iter) Value() []byte { return it.b[it.valStart:it.valEnd] }

// Offset returns the offset of the current value in what the iterator was given.
func (it *Iter) Offset() int { return it.valStart }

// End returns the offset after the closing bracket once Next has returned false
// and Err is nil.
func (it *Iter) End() int { return it.next }

// Err returns why the walk stopped early, a [*SyntaxError], or nil.
func (it *Iter) Err() error {
	if it.fault == FaultNone {
		return nil
	}
	return NewError(it.b, it.next, it.fault)
}

// Get returns the value at a path of keys below obj, and whether it is there.
// Of members with the same key the last counts, as for encoding/json. It
// reports false for anything that is no object or not well-formed.
func Get(obj []byte, path ...string) ([]byte, bool) {
	v := obj
	for _, key := range path {
		var found []byte
		it := Object(v)
		for it.Next() {
			if it.KeyIs(key) {
				found = it.Value()
			}
		}
		if it.fault != FaultNone || found == nil {
			return nil, false
		}
		v = found
	}
	return v, true
}

// Len returns the number of members or elements of the object or array that v
// starts with, or -1 when it is neither or not well-formed.
func Len(v []byte) int {
	it := Object(v)
	if KindOf(v) == KindArray {
		it = Array(v)
	}
	n := 0
	for it.Next() {
		n++
	}
	if it.fault != FaultNone {
		return -1
	}
	return n
}
