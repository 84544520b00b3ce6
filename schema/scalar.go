package schema

import (
	"unicode/utf8"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

func (c *checker) literal(n *node, i int, t typeSet) int {
	end, fault := rawjson.ScanLiteral(c.doc, i)
	if fault != rawjson.FaultNone {
		return -1
	}
	if n.types&t == 0 {
		return c.judge(c.fail(n, i, kwType, 0), end)
	}
	if n.enum != nil && !n.enum.hasLiteral(c.doc[i]) {
		return c.judge(c.fail(n, i, n.enum.keyword, 0), end)
	}
	return end
}

// judge returns end when the check goes on.
func (c *checker) judge(goOn bool, end int) int {
	if !goOn {
		return -1
	}
	return end
}

func (c *checker) str(n *node, i int) int {
	end, plain, fault := rawjson.ScanString(c.doc, i)
	if fault != rawjson.FaultNone {
		return -1
	}
	if n.types&typeString == 0 {
		return c.judge(c.fail(n, i, kwType, 0), end)
	}
	if n.enum == nil && n.str == nil {
		return end
	}
	text := c.doc[i+1 : end-1]
	if !plain {
		c.scratch = rawjson.AppendUnquoted(c.scratch[:0], c.doc[i:end])
		text = c.scratch
	}
	if n.enum != nil && !n.enum.hasString(text) {
		return c.judge(c.fail(n, i, n.enum.keyword, 0), end)
	}
	return c.judge(n.str == nil || c.text(n, i, text), end)
}

func (c *checker) text(n *node, i int, text []byte) bool {
	r := n.str
	if r.minLength > 0 || r.maxLength >= 0 {
		size := utf8.RuneCount(text)
		if size < r.minLength && !c.fail(n, i, kwMinLength, 0) {
			return false
		}
		if r.maxLength >= 0 && size > r.maxLength && !c.fail(n, i, kwMaxLength, 0) {
			return false
		}
	}
	return r.pattern == nil || c.match(r.pattern, text) || c.fail(n, i, kwPattern, 0)
}

func (c *checker) number(n *node, i int) int {
	if b := c.doc[i]; b != '-' && b-'0' > 9 {
		return -1
	}
	end, plain, fault := rawjson.ScanNumber(c.doc, i)
	if fault != rawjson.FaultNone {
		return -1
	}
	if n.types&typeNumber != 0 && n.enum == nil && n.num == nil {
		return end
	}
	num := newNumber(c.doc[i:end], plain)
	if n.types&typeNumber == 0 && (n.types&typeInteger == 0 || !plain && !num.isInt()) {
		return c.judge(c.fail(n, i, kwType, 0), end)
	}
	if n.enum != nil && !n.enum.hasNumber(&num) {
		return c.judge(c.fail(n, i, n.enum.keyword, 0), end)
	}
	return c.judge(n.num == nil || c.limits(n, i, &num), end)
}

func (c *checker) limits(n *node, i int, num *number) bool {
	r := n.num
	if r.minimum != nil && num.cmp(r.minimum) < 0 && !c.fail(n, i, kwMinimum, 0) {
		return false
	}
	if r.maximum != nil && num.cmp(r.maximum) > 0 && !c.fail(n, i, kwMaximum, 0) {
		return false
	}
	if r.above != nil && num.cmp(r.above) <= 0 && !c.fail(n, i, kwExclusiveMinimum, 0) {
		return false
	}
	if r.below != nil && num.cmp(r.below) >= 0 && !c.fail(n, i, kwExclusiveMaximum, 0) {
		return false
	}
	return r.multipleOf == nil || r.multipleOf.divides(num) || c.fail(n, i, kwMultipleOf, 0)
}

// admits reports whether the type of the well-formed value at i is in the set.
func (t typeSet) admits(doc []byte, i int) bool {
	switch doc[i] {
	case '"':
		return t&typeString != 0
	case '{':
		return t&typeObject != 0
	case '[':
		return t&typeArray != 0
	case 't', 'f':
		return t&typeBoolean != 0
	case 'n':
		return t&typeNull != 0
	}
	if t&typeNumber != 0 {
		return true
	}
	end, plain, _ := rawjson.ScanNumber(doc, i)
	num := newNumber(doc[i:end], plain)
	return t&typeInteger != 0 && num.isInt()
}

// format asserts the format of a trusted value, which only texts have.
func (c *checker) format(n *node, i int) bool {
	if c.doc[i] != '"' {
		return true
	}
	end, _, _ := rawjson.ScanString(c.doc, i)
	text, _ := rawjson.Unquote(c.doc[i:end])
	return n.in.format.valid(text) || c.fail(n, i, kwFormat, 0)
}
