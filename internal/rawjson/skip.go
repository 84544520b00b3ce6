package rawjson

import (
	"encoding/binary"
	"math/bits"
)

// skip returns the offset after the value at i. It checks the grammar, and says
// of every value what a trusted [Walker] says; as each message is read by it
// several times, it goes from value to value in one loop.
func skip(b []byte, i int) (int, Fault) {
	if i < len(b) && b[i] == '"' {
		return skipString(b, i)
	}
	var open brackets
	for {
		var fault Fault
		if i, fault = open.value(b, i); fault != FaultNone || open.depth == 0 {
			return i, fault
		}
	}
}

// brackets are the arrays and objects that are open.
type brackets struct {
	depth   int
	closing byte                           // of the innermost
	objects [DefaultMaxDepth/64 + 1]uint64 // a bit for each that is an object
}

func (o *brackets) push(object bool) {
	bit := uint64(1) << (o.depth % 64)
	o.objects[o.depth/64] &^= bit
	o.closing = ']'
	if object {
		o.objects[o.depth/64] |= bit
		o.closing = '}'
	}
	o.depth++
}

func (o *brackets) pop() {
	o.depth--
	if at := o.depth - 1; at >= 0 && o.objects[at/64]>>(at%64)&1 != 0 {
		o.closing = '}'
	} else {
		o.closing = ']'
	}
}

// value reads the value at i to its end or, of an array or object that is not
// empty, to its first element. It returns where the next value is, or with
// nothing open the end.
func (o *brackets) value(b []byte, i int) (int, Fault) {
	if i >= len(b) {
		return len(b), FaultEnd
	}
	var fault Fault
	switch c := b[i]; c {
	case '"':
		i, fault = skipString(b, i)
	case '{', '[':
		if o.depth == DefaultMaxDepth {
			return i, FaultDepth
		}
		o.push(c == '{')
		return o.first(b, SkipSpace(b, i+1))
	case 't', 'f', 'n':
		i, fault = ScanLiteral(b, i)
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		i, _, fault = ScanNumber(b, i)
	default:
		fault = FaultValue
	}
	if fault != FaultNone {
		return i, fault
	}
	return o.next(b, i)
}

// first is where the first value is of what was just opened.
func (o *brackets) first(b []byte, i int) (int, Fault) {
	switch {
	case i >= len(b):
		return i, FaultEnd
	case b[i] == o.closing:
		o.pop()
		return o.next(b, i+1)
	case o.closing == '}':
		return skipKey(b, i)
	}
	return i, FaultNone
}

// next is where the next value is after one that ends at i.
func (o *brackets) next(b []byte, i int) (int, Fault) {
	for o.depth > 0 {
		i = SkipSpace(b, i)
		switch {
		case i >= len(b):
			return i, FaultEnd
		case b[i] == o.closing:
			o.pop()
			i++
			continue
		case b[i] != ',':
			return i, FaultSeparator
		}
		i = SkipSpace(b, i+1)
		if o.closing == '}' {
			return skipKey(b, i)
		}
		return i, FaultNone
	}
	return i, FaultNone
}

// skipKey returns where the value is of the member whose key is at i.
func skipKey(b []byte, i int) (int, Fault) {
	if i >= len(b) {
		return i, FaultEnd
	}
	if b[i] != '"' {
		return i, FaultKey
	}
	i, fault := skipString(b, i)
	if fault != FaultNone {
		return i, fault
	}
	if i+1 < len(b) && b[i] == ':' && b[i+1] > ' ' {
		return i + 1, FaultNone
	}
	return ScanColon(b, i)
}

// skipString is ScanString for whoever does not ask about escapes.
func skipString(b []byte, i int) (int, Fault) {
	for j := i + 1; j+8 <= len(b); j += 8 {
		marks := special(binary.LittleEndian.Uint64(b[j:]))
		if marks == 0 {
			continue
		}
		if j += bits.TrailingZeros64(marks) / 8; b[j] == '"' {
			return j + 1, FaultNone
		}
		break
	}
	end, _, fault := ScanString(b, i)
	return end, fault
}
