package schema

import (
	"strconv"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// places finds values of a well-formed text by JSON Pointer. In a large text it
// remembers where the members of an object are, so that many pointers do not
// cost a scan each.
type places struct {
	doc     []byte
	members map[int]map[string]int
}

// largeText is from where on members are remembered.
const largeText = 32 << 10

// child returns where the value is that a token of a pointer names in the value
// at i.
func (p *places) child(i int, token string) (int, bool) {
	if p.doc[i] == '[' {
		return p.element(i, token)
	}
	return p.member(i, token)
}

// member returns where the member of the object at i is that has a name.
func (p *places) member(i int, name string) (int, bool) {
	if len(p.doc) < largeText {
		for it := rawjson.Object(p.doc[i:]); it.Next(); {
			if it.KeyIs(name) {
				return i + it.Offset(), true
			}
		}
		return 0, false
	}
	at, ok := p.index(i)[name]
	return at, ok
}

// index returns where the members of the object or the elements of the array at
// i are.
func (p *places) index(i int) map[string]int {
	if index := p.members[i]; index != nil {
		return index
	}
	index := map[string]int{}
	for it := rawjson.Object(p.doc[i:]); it.Next(); {
		index[it.Key()] = i + it.Offset()
	}
	for it := rawjson.Array(p.doc[i:]); it.Next(); {
		index[strconv.Itoa(len(index))] = i + it.Offset()
	}
	if p.members == nil {
		p.members = map[int]map[string]int{}
	}
	p.members[i] = index
	return index
}

func (p *places) element(i int, token string) (int, bool) {
	at, ok := p.index(i)[token]
	return at, ok
}
