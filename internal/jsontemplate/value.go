package jsontemplate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// truth is whether a value is more than the zero of its type. A number of the
// arguments is a text, and so always true.
func truth(v any) bool {
	switch v := v.(type) {
	case nil, null:
		return false
	case bool:
		return v
	case complex128:
		return v != 0
	case float64:
		return v != 0
	case Data:
		return true
	}
	if n, ok := integer(v); ok {
		return n != 0
	}
	n, _ := length(v)
	return n > 0
}

// describe names the type of a value for an error.
func describe(v any) string {
	switch v.(type) {
	case nil, null:
		return "nothing"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case json.Number:
		return "a number of the arguments"
	case map[string]any, Data:
		return "an object"
	case []any:
		return "an array"
	}
	return "a number"
}

// integer is the value of a Go integer, of which a template has these kinds: a
// constant, what Int64 of a number gives, and a byte of a text.
func integer(v any) (int64, bool) {
	switch v := v.(type) {
	case int:
		return int64(v), true
	case int64:
		return v, true
	case uint8:
		return int64(v), true
	}
	return 0, false
}

// text is the value of what has the kind of a string.
func text(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return string(v), true
	}
	return "", false
}

func length(v any) (int, error) {
	if s, ok := text(v); ok {
		return len(s), nil
	}
	switch v := v.(type) {
	case map[string]any:
		return len(v), nil
	case []any:
		return len(v), nil
	}
	return 0, fmt.Errorf("%s has no length", describe(v))
}

// place reads an index of something that has room for so many elements.
func place(v any, room int) (int, error) {
	n, ok := integer(v)
	if !ok {
		return 0, fmt.Errorf("%s cannot be an index", describe(v))
	}
	if n < 0 || n > int64(room) {
		return 0, fmt.Errorf("index out of range: %d", n)
	}
	return int(n), nil
}

// index follows indexes from its first argument.
func index(args []any) (any, error) {
	item := args[0]
	if item == nil {
		return nil, errors.New("index of nothing")
	}
	for _, at := range args[1:] {
		var err error
		if item, err = element(item, at); err != nil {
			return nil, err
		}
	}
	return item, nil
}

func element(item, at any) (any, error) {
	if object, ok := item.(map[string]any); ok {
		name, ok := at.(string)
		if !ok {
			return nil, fmt.Errorf("%s cannot be the name of a member", describe(at))
		}
		return object[name], nil
	}
	list, isList := item.([]any)
	s, isText := text(item)
	if !isList && !isText {
		return nil, fmt.Errorf("%s cannot be indexed", describe(item))
	}
	size := len(s) + len(list)
	n, err := place(at, size)
	switch {
	case err != nil:
		return nil, err
	case n == size:
		return nil, fmt.Errorf("index out of range: %d", n)
	case isText:
		return s[n], nil
	}
	return list[n], nil
}

// slice cuts a text or an array. As in Go, an array can be cut longer than it
// is, within its capacity.
func slice(args []any) (any, error) {
	s, isText := text(args[0])
	list, isList := args[0].([]any)
	if !isText && !isList {
		return nil, fmt.Errorf("%s cannot be sliced", describe(args[0]))
	}
	if isText && len(args) == 4 {
		return nil, errors.New("a string has no third index")
	}
	room := len(s) + cap(list)
	cuts := [3]int{0, len(s) + len(list), room}
	for i, at := range args[1:] {
		n, err := place(at, room)
		if err != nil {
			return nil, err
		}
		cuts[i] = n
	}
	if cuts[0] > cuts[1] || cuts[1] > cuts[2] {
		return nil, errors.New("the indexes of the slice are in the wrong order")
	}
	if isList {
		return list[cuts[0]:cuts[1]:cuts[2]], nil
	}
	if _, ok := args[0].(json.Number); ok {
		return json.Number(s[cuts[0]:cuts[1]]), nil
	}
	return s[cuts[0]:cuts[1]], nil
}

// comparison is the function eq, ne, lt, le, gt or ge.
func comparison(name string) function {
	switch name {
	case "eq":
		return function{1, -1, equalsAny}
	case "ne":
		return function{2, 2, func(args []any) (any, error) {
			same, err := equal(args[0], args[1])
			return !same, err
		}}
	}
	return function{2, 2, func(args []any) (any, error) {
		order, err := compare(args[0], args[1])
		switch name {
		case "lt":
			return order < 0, err
		case "le":
			return order <= 0, err
		case "gt":
			return order > 0, err
		}
		return order >= 0, err
	}}
}

// equalsAny is whether the first argument equals one of the others. Those
// behind it are not compared.
func equalsAny(args []any) (any, error) {
	if len(args) == 1 {
		return nil, errors.New("the second argument is missing")
	}
	for _, other := range args[1:] {
		if same, err := equal(args[0], other); same || err != nil {
			return same, err
		}
	}
	return false, nil
}

func equal(a, b any) (bool, error) {
	if a == nil || b == nil {
		return absent(a) && absent(b), nil
	}
	switch x := a.(type) {
	case bool:
		if y, ok := b.(bool); ok {
			return x == y, nil
		}
	case complex128:
		if y, ok := b.(complex128); ok {
			return x == y, nil
		}
	case map[string]any:
		if y, ok := b.(map[string]any); ok && (x == nil || y == nil) {
			return x == nil && y == nil, nil
		}
	default:
		order, err := compare(a, b)
		return order == 0, err
	}
	return false, incomparable(a, b)
}

// absent is whether a value is nothing, also as arguments that were not given.
func absent(v any) bool {
	object, ok := v.(map[string]any)
	return v == nil || ok && object == nil
}

// compare orders two texts or two numbers.
func compare(a, b any) (int, error) {
	if x, ok := text(a); ok {
		if y, ok := text(b); ok {
			return strings.Compare(x, y), nil
		}
	}
	if x, ok := integer(a); ok {
		if y, ok := integer(b); ok {
			return cmp.Compare(x, y), nil
		}
	}
	if x, ok := a.(float64); ok {
		if y, ok := b.(float64); ok {
			return cmp.Compare(x, y), nil
		}
	}
	return 0, incomparable(a, b)
}

func incomparable(a, b any) error {
	_, first := a.(json.Number)
	_, second := b.(json.Number)
	if first != second {
		return errors.New(`a number of the arguments is compared as text: write "1" for 1, or .Int64 behind the number`)
	}
	return fmt.Errorf("%s cannot be compared with %s", describe(a), describe(b))
}
