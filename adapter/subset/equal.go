package subset

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// A decimal is a number as digits, without zeros at either end, times a power of
// ten. Zero has no digits.
type decimal struct {
	negative bool
	digits   string
	exponent int64
}

// parseDecimal reads a number as JSON writes it.
func parseDecimal(v []byte) decimal {
	text, negative := strings.CutPrefix(string(v), "-")
	mantissa, power, _ := strings.Cut(strings.ToLower(text), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimRight(whole+fraction, "0")
	d := decimal{negative: negative, exponent: int64(len(whole+fraction)-len(digits)) - int64(len(fraction))}
	if d.digits = strings.TrimLeft(digits, "0"); d.digits == "" {
		return decimal{}
	}
	if power != "" {
		n, err := strconv.ParseInt(strings.TrimPrefix(power, "+"), 10, 32)
		if err != nil { // beyond anything that is compared with it
			n = 1 << 40
			if strings.HasPrefix(power, "-") {
				n = -n
			}
		}
		d.exponent += n
	}
	return d
}

func (d decimal) integral() bool { return d.digits == "" || d.exponent >= 0 }

func (d decimal) String() string {
	sign := ""
	if d.negative {
		sign = "-"
	}
	return sign + d.digits + "e" + strconv.FormatInt(d.exponent, 10)
}

// floats reports whether a number is one for those who know 64 bits of floating
// point alone: neither infinite nor rounded to zero.
func floats(v []byte) bool {
	f, err := strconv.ParseFloat(string(rawjson.Trim(v)), 64)
	return err == nil && (f != 0 || parseDecimal(rawjson.Trim(v)).digits == "")
}

// identity returns the same text for values that are equal, as JSON Schema has it:
// members in any order, numbers by their value.
func identity(v []byte) string { return string(appendIdentity(nil, rawjson.Trim(v))) }

func appendIdentity(dst, v []byte) []byte {
	switch rawjson.KindOf(v) {
	case rawjson.KindNumber:
		return append(dst, parseDecimal(v).String()...)
	case rawjson.KindString:
		return rawjson.AppendQuoted(dst, text(v))
	case rawjson.KindArray:
		dst = append(dst, '[')
		for it := rawjson.Array(v); it.Next(); {
			dst = append(appendIdentity(dst, it.Value()), ',')
		}
		return append(dst, ']')
	case rawjson.KindObject:
		var members [][]byte
		for it := rawjson.Object(v); it.Next(); {
			members = append(members, appendIdentity(append(rawjson.Quote(it.Key()), ':'), it.Value()))
		}
		slices.SortFunc(members, bytes.Compare)
		return append(append(append(dst, '{'), bytes.Join(members, []byte(","))...), '}')
	}
	return append(dst, v...)
}
