package rawjson

import (
	"encoding/binary"
	"math/bits"
)

// Kind is the type of a JSON value.
type Kind uint8

// The kinds of JSON values. KindInvalid is for bytes that no value starts with.
const (
	KindInvalid Kind = iota
	KindNull
	KindBool
	KindNumber
	KindString
	KindArray
	KindObject
)

// String returns the JSON name of the kind: "null", "boolean", "number",
// "string", "array", "object", or "invalid".
func (k Kind) String() string {
	return [...]string{"invalid", "null", "boolean", "number", "string", "array", "object"}[min(k, KindObject)]
}

// KindOf returns the kind of the value that v starts with, after white space,
// judged by its first byte only.
func KindOf(v []byte) Kind {
	i := SkipSpace(v, 0)
	if i == len(v) {
		return KindInvalid
	}
	return kindOfByte(v[i])
}

func kindOfByte(c byte) Kind {
	switch c {
	case '{':
		return KindObject
	case '[':
		return KindArray
	case '"':
		return KindString
	case 't', 'f':
		return KindBool
	case 'n':
		return KindNull
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return KindNumber
	}
	return KindInvalid
}

// SkipSpace returns the offset of the first byte at or after i that is not JSON
// white space, or len(b).
func SkipSpace(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' && isSpace(b[i]) {
		i++
	}
	return i
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// special marks, with its high bit, each byte of w that is a quote, a backslash
// or a control character. Bytes above the first marked one may be marked
// wrongly, so only "any" and "the first" are to be asked of the result.
func special(w uint64) uint64 {
	quote := w ^ ('"' * lowBits)
	slash := w ^ ('\\' * lowBits)
	return ((quote-lowBits)&^quote | (slash-lowBits)&^slash | (w-0x20*lowBits)&^w) & highBits
}

// ScanString scans the string whose opening quote is at i and returns the
// offset after its closing quote, and whether it is free of escapes. On a fault
// the offset is that of the fault.
func ScanString(b []byte, i int) (end int, plain bool, fault Fault) {
	i++
	plain = true
	for {
		i = SkipPlain(b, i)
		switch {
		case i >= len(b):
			return len(b), plain, FaultEnd
		case b[i] == '"':
			return i + 1, plain, FaultNone
		case b[i] != '\\':
			return i, plain, FaultString
		}
		plain = false
		if i, fault = scanEscape(b, i); fault != FaultNone {
			return i, plain, fault
		}
	}
}

// SkipPlain returns the offset of the first quote, backslash or control
// character at or after i, or len(b).
func SkipPlain(b []byte, i int) int {
	for ; i+8 <= len(b); i += 8 {
		if marks := special(binary.LittleEndian.Uint64(b[i:])); marks != 0 {
			return i + bits.TrailingZeros64(marks)/8
		}
	}
	for i < len(b) && b[i] != '"' && b[i] != '\\' && b[i] >= ' ' {
		i++
	}
	return i
}

// scanEscape returns the offset after the escape whose backslash is at i.
func scanEscape(b []byte, i int) (int, Fault) {
	if i+1 >= len(b) {
		return len(b), FaultEnd
	}
	switch b[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2, FaultNone
	case 'u':
		for j := i + 2; j < i+6; j++ {
			if j >= len(b) {
				return len(b), FaultEnd
			}
			if hexValue(b[j]) < 0 {
				return j, FaultEscape
			}
		}
		return i + 6, FaultNone
	}
	return i + 1, FaultEscape
}

func hexValue(c byte) int {
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

// ScanNumber returns the offset after the number that starts at i, and whether
// it is written as a plain integer (no fraction, no exponent).
func ScanNumber(b []byte, i int) (end int, plain bool, fault Fault) {
	if i < len(b) && b[i] == '-' {
		i++
	}
	switch {
	case i >= len(b):
		return i, false, FaultEnd
	case b[i] == '0':
		i++
	case isDigit(b[i]):
		i = skipDigits(b, i)
	default:
		return i, false, FaultNumber
	}
	plain = true
	if i < len(b) && b[i] == '.' {
		plain = false
		if i, fault = needDigits(b, i+1); fault != FaultNone {
			return i, plain, fault
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		plain = false
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if i, fault = needDigits(b, i); fault != FaultNone {
			return i, plain, fault
		}
	}
	return i, plain, FaultNone
}

func isDigit(c byte) bool { return c-'0' <= 9 }

func skipDigits(b []byte, i int) int {
	for i < len(b) && isDigit(b[i]) {
		i++
	}
	return i
}

func needDigits(b []byte, i int) (int, Fault) {
	if i >= len(b) {
		return i, FaultEnd
	}
	if !isDigit(b[i]) {
		return i, FaultNumber
	}
	return skipDigits(b, i), FaultNone
}

// ScanLiteral returns the offset after the true, false or null that starts at i.
func ScanLiteral(b []byte, i int) (end int, fault Fault) {
	want := "null"
	switch b[i] {
	case 't':
		want = "true"
	case 'f':
		want = "false"
	}
	for j := range len(want) {
		if i+j >= len(b) {
			return len(b), FaultEnd
		}
		if b[i+j] != want[j] {
			return i + j, FaultLiteral
		}
	}
	return i + len(want), FaultNone
}
