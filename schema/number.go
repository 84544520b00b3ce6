package schema

import (
	"math"
	"math/big"
	"strconv"
)

// decimal is a JSON number as it is written, ready for exact comparison: its
// value is 0.d1d2d3… × 10^exp, with d1 not zero.
type decimal struct {
	neg    bool
	zero   bool
	digits []byte // from the first to the last digit that is not zero, maybe with a '.'
	n      int    // number of digits
	exp    int64
}

// maxExp is where exponents stop growing: beyond it numbers are only very large
// or very small.
const maxExp = math.MaxInt64 / 4

// parseDecimal reads a well-formed JSON number.
func parseDecimal(b []byte) decimal {
	var d decimal
	if b[0] == '-' {
		d.neg = true
		b = b[1:]
	}
	mantissa, exp := splitExponent(b)
	first, last, point := -1, -1, len(mantissa)
	for i, c := range mantissa {
		switch {
		case c == '.':
			point = i
		case c != '0':
			last = i
			if first < 0 {
				first = i
			}
		}
	}
	if first < 0 {
		return decimal{zero: true}
	}
	d.digits = mantissa[first : last+1]
	d.n = len(d.digits)
	d.exp = int64(point-first) + exp
	switch {
	case first > point:
		d.exp++ // the point itself was counted
	case point < last:
		d.n--
	}
	return d
}

func splitExponent(b []byte) (mantissa []byte, exp int64) {
	for i, c := range b {
		if c == 'e' || c == 'E' {
			return b[:i], parseExponent(b[i+1:])
		}
	}
	return b, 0
}

// parseExponent reads an exponent, which saturates at maxExp.
func parseExponent(b []byte) int64 {
	neg := b[0] == '-'
	if b[0] == '-' || b[0] == '+' {
		b = b[1:]
	}
	var e int64
	for _, c := range b {
		if e = e*10 + int64(c-'0'); e > maxExp/10 {
			e = maxExp
			break
		}
	}
	if neg {
		return -e
	}
	return e
}

// isInt reports whether the number is mathematically an integer.
func (d decimal) isInt() bool { return d.zero || d.exp >= int64(d.n) }

// bounded reports whether exact arithmetic on the number is cheap.
func (d decimal) bounded() bool {
	return len(d.digits) <= maxExponent && d.exp <= maxExponent && d.exp >= -maxExponent
}

// cmp compares two numbers exactly.
func (d decimal) cmp(o decimal) int {
	switch {
	case d.sign() != o.sign():
		return d.sign() - o.sign()
	case d.zero:
		return 0
	}
	c := d.cmpMagnitude(o)
	if d.neg {
		return -c
	}
	return c
}

func (d decimal) sign() int {
	switch {
	case d.zero:
		return 0
	case d.neg:
		return -1
	}
	return 1
}

func (d decimal) cmpMagnitude(o decimal) int {
	if d.exp != o.exp {
		if d.exp < o.exp {
			return -1
		}
		return 1
	}
	a, b := d.digits, o.digits
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] == '.':
			a = a[1:]
		case b[0] == '.':
			b = b[1:]
		case a[0] != b[0]:
			return int(a[0]) - int(b[0])
		default:
			a, b = a[1:], b[1:]
		}
	}
	return len(a) - len(b)
}

// appendCanonical appends a text that is the same for equal numbers.
func (d decimal) appendCanonical(dst []byte) []byte {
	if d.zero {
		return append(dst, '0')
	}
	if d.neg {
		dst = append(dst, '-')
	}
	for _, c := range d.digits {
		if c != '.' {
			dst = append(dst, c)
		}
	}
	dst = append(dst, 'e')
	return strconv.AppendInt(dst, d.exp, 10)
}

// appendInt appends an integer of at most 18 digits.
func appendInt(dst []byte, d decimal) []byte { return strconv.AppendInt(dst, d.int64(), 10) }

// bound is a limit of the schema. Small integers compare without a decimal.
type bound struct {
	dec   decimal
	small int64
	isInt bool
	text  string
}

func newBound(r *big.Rat) *bound {
	if r == nil {
		return nil
	}
	digits, _ := r.FloatPrec()
	text := r.FloatString(digits)
	b := &bound{dec: parseDecimal([]byte(text)), text: text}
	if r.IsInt() && r.Num().IsInt64() {
		b.small, b.isInt = r.Num().Int64(), true
	}
	return b
}

// number is a number of a document, read as far as a rule needs.
type number struct {
	raw []byte
	dec decimal
	// small is the value towards zero when isSmall or isFraction.
	small      int64
	isSmall    bool // an integer of at most 18 characters
	isFraction bool // such an integer and a fraction, without exponent
	parsed     bool
}

// newNumber takes a well-formed number; plain says that it has neither fraction
// nor exponent.
func newNumber(raw []byte, plain bool) number {
	n := number{raw: raw}
	if len(raw) <= 18 {
		rest := 0
		n.small, rest = smallInt(raw)
		n.isSmall = plain
		n.isFraction = !plain && rest < len(raw) && raw[rest] == '.' && !hasExponent(raw[rest:])
	}
	return n
}

// smallInt reads the integer that raw starts with and returns the offset after
// it.
func smallInt(raw []byte) (v int64, end int) {
	neg := raw[0] == '-'
	if neg {
		end = 1
	}
	for ; end < len(raw) && raw[end]-'0' <= 9; end++ {
		v = v*10 + int64(raw[end]-'0')
	}
	if neg {
		return -v, end
	}
	return v, end
}

func hasExponent(raw []byte) bool {
	for _, c := range raw {
		if c|0x20 == 'e' {
			return true
		}
	}
	return false
}

func (n *number) decimal() decimal {
	if !n.parsed {
		n.dec, n.parsed = parseDecimal(n.raw), true
	}
	return n.dec
}

func (n *number) isInt() bool { return n.isSmall || n.decimal().isInt() }

func (n *number) cmp(b *bound) int {
	if b.isInt && (n.isSmall || n.isFraction) {
		switch {
		case n.small < b.small: // and a fraction does not reach the next integer
			return -1
		case n.small > b.small:
			return 1
		case n.isSmall:
			return 0
		}
	}
	return n.decimal().cmp(b.dec)
}

// divisor is the value of multipleOf.
type divisor struct {
	rat   *big.Rat
	small int64
	text  string
}

func newDivisor(r *big.Rat) *divisor {
	if r == nil || r.Sign() == 0 {
		return nil
	}
	digits, _ := r.FloatPrec()
	d := &divisor{rat: r, text: r.FloatString(digits)}
	if r.IsInt() && r.Num().IsInt64() {
		d.small = r.Num().Int64()
	}
	return d
}

// divides reports whether n is an exact multiple. The work is bounded: a number
// with more than 4096 digits is never a multiple; exponents of any size are fine.
func (d *divisor) divides(n *number) bool {
	if n.isSmall && d.small > 0 {
		return n.small%d.small == 0
	}
	dec := n.decimal()
	if dec.zero {
		return true
	}
	if dec.n > maxExponent {
		return false
	}
	digits := make([]byte, 0, dec.n)
	for _, c := range dec.digits {
		if c != '.' {
			digits = append(digits, c)
		}
	}
	mantissa, _ := new(big.Int).SetString(string(digits), 10)
	return d.dividesScaled(mantissa, dec.exp-int64(dec.n))
}

// dividesScaled reports whether mantissa × 10^scale is a multiple of num/den,
// that is, whether num divides mantissa × den × 10^scale.
func (d *divisor) dividesScaled(mantissa *big.Int, scale int64) bool {
	num, den := d.rat.Num(), d.rat.Denom()
	product := new(big.Int).Mul(mantissa, den)
	ten := big.NewInt(10)
	if scale >= 0 {
		power := new(big.Int).Exp(ten, big.NewInt(scale), num)
		return product.Mul(product, power).Mod(product, num).Sign() == 0
	}
	// 10^-scale must divide the product, so it cannot be longer than it.
	if -scale > int64(len(product.Text(10))) {
		return false
	}
	power := new(big.Int).Exp(ten, big.NewInt(-scale), nil)
	return product.Mod(product, power.Mul(power, num)).Sign() == 0
}
