package schema

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// structField is a field of a struct as encoding/json sees it.
type structField struct {
	name   string // in JSON
	goName string
	typ    reflect.Type
	tag    reflect.StructTag

	tagged              bool
	index               []int
	omitEmpty, omitZero bool
	quoted              bool
	throughPointer      bool // promoted from an embedded pointer
	throughHidden       bool // promoted from an embedded pointer to an unexported struct
}

// neverNull reports whether a nil value of the field is left out rather than
// written as null.
func (f structField) neverNull() bool {
	if f.omitEmpty {
		return true
	}
	type zeroer interface{ IsZero() bool }
	own := reflect.TypeFor[zeroer]()
	return f.omitZero && !f.typ.Implements(own) && !reflect.PointerTo(f.typ).Implements(own)
}

// embedded is a struct whose fields are promoted.
type embedded struct {
	typ                           reflect.Type
	index                         []int
	throughPointer, throughHidden bool
}

// structFields returns the fields of t that encoding/json knows: level by level,
// the shallowest of a name wins, then the tagged one, and else none.
func structFields(t reflect.Type) []structField {
	var all []structField
	visited := map[reflect.Type]bool{}
	level := []embedded{{typ: t}}
	times := map[reflect.Type]int{t: 1}
	for len(level) > 0 {
		var next []embedded
		nextTimes := map[reflect.Type]int{}
		for _, e := range level {
			if visited[e.typ] {
				continue
			}
			visited[e.typ] = true
			for i := range e.typ.NumField() {
				f, sub := readField(e, i)
				switch {
				case sub != nil:
					if nextTimes[sub.typ]++; nextTimes[sub.typ] == 1 {
						next = append(next, *sub)
					}
				case f != nil:
					all = append(all, *f)
					if times[e.typ] > 1 {
						all = append(all, *f) // so that the two annul each other
					}
				}
			}
		}
		level, times = next, nextTimes
	}
	return dominant(all)
}

// readField returns a field of e, or the struct that it embeds, or neither.
func readField(e embedded, i int) (*structField, *embedded) {
	sf := e.typ.Field(i)
	base := sf.Type
	if base.Name() == "" && base.Kind() == reflect.Pointer {
		base = base.Elem()
	}
	if !sf.IsExported() && !(sf.Anonymous && base.Kind() == reflect.Struct) {
		return nil, nil
	}
	tag := sf.Tag.Get("json")
	if tag == "-" {
		return nil, nil
	}
	name, options, _ := strings.Cut(tag, ",")
	if !validName(name) {
		name = ""
	}
	index := append(slices.Clone(e.index), i)
	if name == "" && sf.Anonymous && base.Kind() == reflect.Struct {
		isPointer := sf.Type.Kind() == reflect.Pointer
		return nil, &embedded{
			typ: base, index: index, throughPointer: e.throughPointer || isPointer,
			throughHidden: e.throughHidden || isPointer && !sf.IsExported(),
		}
	}
	f := &structField{
		name: name, goName: sf.Name, typ: sf.Type, tag: sf.Tag, tagged: name != "", index: index,
		throughPointer: e.throughPointer, throughHidden: e.throughHidden,
	}
	if name == "" {
		f.name = sf.Name
	}
	for option := range strings.SplitSeq(options, ",") {
		f.omitEmpty = f.omitEmpty || option == "omitempty"
		f.omitZero = f.omitZero || option == "omitzero"
		f.quoted = f.quoted || option == "string" && canQuote(base.Kind())
	}
	return f, nil
}

func canQuote(k reflect.Kind) bool {
	return k >= reflect.Bool && k <= reflect.Float64 || k == reflect.String
}

// validName reports whether encoding/json takes a name from a tag.
func validName(name string) bool {
	for _, c := range name {
		if !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", c) && !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			return false
		}
	}
	return name != ""
}

// dominant drops the fields that another of the same name hides, and puts the
// others in the order of the source.
func dominant(all []structField) []structField {
	slices.SortStableFunc(all, func(a, b structField) int {
		return cmp.Or(
			strings.Compare(a.name, b.name),
			cmp.Compare(len(a.index), len(b.index)),
			-cmp.Compare(btoi(a.tagged), btoi(b.tagged)),
			slices.Compare(a.index, b.index),
		)
	})
	var out []structField
	for i := 0; i < len(all); {
		j := i + 1
		for j < len(all) && all[j].name == all[i].name {
			j++
		}
		alone := j == i+1 || len(all[i].index) != len(all[i+1].index) || all[i].tagged != all[i+1].tagged
		if alone {
			out = append(out, all[i])
		}
		i = j
	}
	slices.SortFunc(out, func(a, b structField) int { return slices.Compare(a.index, b.index) })
	return out
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
