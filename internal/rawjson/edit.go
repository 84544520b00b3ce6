package rawjson

// Member is a member of an object, for [SetAll].
type Member struct {
	Key   string
	Value []byte
}

// Set returns obj with the member named key holding value. A member that is
// there keeps its place and every other byte stays as it is; a new one is
// appended. Of several members with that key the last is changed. value must be
// one well-formed JSON value. obj itself is not modified. The error is
// [ErrNotObject] or a [*SyntaxError].
func Set(obj []byte, key string, value []byte) ([]byte, error) {
	return SetAll(obj, Member{key, value})
}

// SetAll is Set for several members, whose keys differ, in one pass. New ones
// are appended in their order.
func SetAll(obj []byte, members ...Member) ([]byte, error) {
	const few = 8
	var room [few]span
	places := append(room[:0], make([]span, len(members))...)
	size := len(obj)
	for _, m := range members {
		if !Valid(m.Value) {
			return nil, Check(m.Value, Options{AllowDuplicates: true, AllowInvalidUTF8: true})
		}
		size += len(m.Key) + len(m.Value) + 4
	}
	count := 0
	it := Object(obj)
	for it.Next() {
		count++
		for i := range members {
			if it.KeyIs(members[i].Key) {
				places[i] = span{it.valStart, it.valEnd}
			}
		}
	}
	if err := it.endOf(obj); err != nil {
		return nil, err
	}
	at := it.End() - 1
	if count > 0 {
		at = it.valEnd
	}
	return rewrite(make([]byte, 0, size), obj, members, places, at, count > 0), nil
}

// span is a part of a document. It is empty where there is none.
type span struct{ start, end int }

// rewrite appends obj with the members in their places, and those without one
// at the offset at, after others or not.
func rewrite(out, obj []byte, members []Member, places []span, at int, after bool) []byte {
	copied := 0
	for next := nextPlace(places, 0); next >= 0; next = nextPlace(places, copied) {
		out = append(out, obj[copied:places[next].start]...)
		out = append(out, members[next].Value...)
		copied = places[next].end
	}
	out = append(out, obj[copied:at]...)
	for i, m := range members {
		if places[i].end > 0 {
			continue
		}
		if after {
			out = append(out, ',')
		}
		after = true
		out = AppendQuoted(out, m.Key)
		out = append(out, ':')
		out = append(out, m.Value...)
	}
	return append(out, obj[at:]...)
}

// nextPlace returns the index of the first place that starts at an offset or
// behind it, or -1.
func nextPlace(places []span, from int) int {
	first := -1
	for i, p := range places {
		if p.end > 0 && p.start >= from && (first < 0 || p.start < places[first].start) {
			first = i
		}
	}
	return first
}

// Delete returns obj without any member named key; every other byte stays as it
// is, apart from the comma that went with the member. When there is none, obj
// itself is returned. The error is [ErrNotObject] or a [*SyntaxError].
func Delete(obj []byte, key string) ([]byte, error) {
	var out []byte
	copied, kept, keptEnd := 0, 0, 0
	leading := false // the member just dropped was first, so its comma goes too
	it := Object(obj)
	for it.Next() {
		if leading {
			copied, leading = it.keyStart, false
		}
		switch {
		case !it.KeyIs(key):
			kept++
			keptEnd = it.valEnd
		case kept > 0:
			out = append(out, obj[copied:keptEnd]...)
			copied, keptEnd = it.valEnd, it.valEnd
		default:
			out = append(out, obj[copied:it.keyStart]...)
			copied, leading = it.valEnd, true
		}
	}
	if err := it.endOf(obj); err != nil {
		return nil, err
	}
	if copied == 0 {
		return obj, nil
	}
	return append(out, obj[copied:]...), nil
}

// endOf returns why the walk over obj failed, or a fault when something follows
// the object.
func (it *Iter) endOf(obj []byte) error {
	if k := KindOf(obj); k != KindObject && k != KindInvalid {
		return ErrNotObject
	}
	if err := it.Err(); err != nil {
		return err
	}
	if i := SkipSpace(obj, it.End()); i != len(obj) {
		return NewError(obj, i, FaultTrailing)
	}
	return nil
}

// AppendCompact appends src to dst without the white space between tokens, and
// changes nothing else. The error is a [*SyntaxError]; dst is then returned as
// it was.
func AppendCompact(dst, src []byte) ([]byte, error) {
	if err := Check(src, Options{AllowDuplicates: true, AllowInvalidUTF8: true}); err != nil {
		return dst, err
	}
	for i := 0; i < len(src); {
		switch {
		case src[i] == '"':
			end, _, _ := ScanString(src, i)
			dst = append(dst, src[i:end]...)
			i = end
		case isSpace(src[i]):
			i++
		default:
			dst = append(dst, src[i])
			i++
		}
	}
	return dst, nil
}

// Compact is AppendCompact to a new slice.
func Compact(src []byte) ([]byte, error) {
	out, err := AppendCompact(make([]byte, 0, len(src)), src)
	if err != nil {
		return nil, err
	}
	return out, nil
}
