package rawjson

// Set returns obj with the member named key holding value. A member that is
// there keeps its place and every other byte stays as it is; a new one is
// appended. Of several members with that key the last is changed. value must be
// one well-formed JSON value. obj itself is not modified. The error is
// [ErrNotObject] or a [*SyntaxError].
func Set(obj []byte, key string, value []byte) ([]byte, error) {
	if !Valid(value) {
		return nil, Check(value, Options{AllowDuplicates: true, AllowInvalidUTF8: true})
	}
	start, end, members := -1, -1, 0
	it := Object(obj)
	for it.Next() {
		members++
		if it.KeyIs(key) {
			start, end = it.valStart, it.valEnd
		}
	}
	if err := it.endOf(obj); err != nil {
		return nil, err
	}
	if start >= 0 {
		return splice(obj, start, end, value), nil
	}
	member := make([]byte, 0, len(key)+len(value)+4)
	if members > 0 {
		member = append(member, ',')
	}
	member = AppendQuoted(member, key)
	member = append(member, ':')
	member = append(member, value...)
	at := it.End() - 1
	if members > 0 {
		at = it.valEnd
	}
	return splice(obj, at, at, member), nil
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

func splice(b []byte, start, end int, with []byte) []byte {
	out := make([]byte, 0, len(b)-(end-start)+len(with))
	out = append(out, b[:start]...)
	out = append(out, with...)
	return append(out, b[end:]...)
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
