package artifacts

import (
	"encoding/json"
	"errors"
	"math/big"
	"strings"

	"github.com/itchyny/gojq"
)

// work counts what a query makes. Values share their parts, so that a small one
// in memory can be a huge one when it is written out; what counts is the latter.
type work struct {
	spent, limit int64
}

const (
	// workFloor and workFactor bound the values that a query makes: so much, and
	// so many times the value that it runs on.
	workFloor  = 32 << 20
	workFactor = 32
	// smallBytes bounds what is turned into text or split, and tinyBytes what
	// every element of something else is compared with.
	smallBytes = 256 << 10
	tinyBytes  = 16 << 10
	maxBits    = 4096 // of an integer
	maxNesting = 10_000
	slotBytes  = 16 // for each value in a list or an object
)

var (
	errWork    = errors.New("the query makes too much of the data: narrow it first")
	errSmall   = errors.New("a value is too large for this: narrow it first")
	errRepeat  = errors.New("strings are not multiplied in queries")
	errInteger = errors.New("an integer is too large")
	errJoin    = errors.New("join takes an array of strings, numbers, booleans and nulls, and a string")
)

// begin starts the count for a value that a query runs on.
func (w *work) begin(v any) {
	size, err := expanded(v, 1<<62, 0)
	if err != nil {
		size = 0
	}
	w.spent, w.limit = 0, workFloor+workFactor*size
}

// add counts a value.
func (w *work) add(v any) error {
	size, err := expanded(v, w.limit-w.spent, 0)
	if err != nil {
		w.spent = w.limit // nothing more after this
		return err
	}
	w.spent += size + slotBytes
	return nil
}

// functions are what the guards in a query call.
func (w *work) functions() []gojq.CompilerOption {
	check := func(test func(v any) error) func(any, []any) any {
		return func(v any, _ []any) any {
			if err := test(v); err != nil {
				return err
			}
			return v
		}
	}
	return []gojq.CompilerOption{
		gojq.WithFunction(guardAll, 0, 0, check(w.add)),
		gojq.WithFunction(guardSmall, 0, 0, check(func(v any) error { return fits(v, smallBytes) })),
		gojq.WithFunction(guardTiny, 0, 0, check(func(v any) error { return fits(v, tinyBytes) })),
		gojq.WithFunction(guardFactor, 0, 0, check(func(v any) error {
			if _, ok := v.(string); ok {
				return errRepeat
			}
			return nil
		})),
		gojq.WithFunction(guardCount, 0, 0, check(func(any) error {
			if w.spent += slotBytes; w.spent > w.limit {
				return errWork
			}
			return nil
		})),
		gojq.WithFunction(guardJoin, 1, 1, func(v any, args []any) any { return joined(v, args[0]) }),
	}
}

func fits(v any, limit int64) error {
	if _, err := expanded(v, limit, 0); err != nil {
		return errSmall
	}
	return nil
}

// expanded returns about how many bytes a value has when it is written out, or
// an error when that is more than limit.
func expanded(v any, limit int64, depth int) (int64, error) {
	if limit < 0 || depth > maxNesting {
		return 0, errWork
	}
	size := int64(8)
	switch v := v.(type) {
	case string:
		size = int64(len(v))
	case json.Number:
		size = int64(len(v))
	case *big.Int:
		if v.BitLen() > maxBits {
			return 0, errInteger
		}
		size = int64(v.BitLen() / 3)
	case []any:
		for _, e := range v {
			part, err := expanded(e, limit-size, depth+1)
			if err != nil {
				return 0, err
			}
			size += part + slotBytes
		}
	case map[string]any:
		for k, e := range v {
			part, err := expanded(e, limit-size-int64(len(k)), depth+1)
			if err != nil {
				return 0, err
			}
			size += part + int64(len(k)) + slotBytes
		}
	}
	if size > limit {
		return 0, errWork
	}
	return size, nil
}

// joined is jq's join, with a bound.
func joined(v, separator any) any {
	list, ok := v.([]any)
	between, text := separator.(string)
	if !ok || !text && len(list) > 1 {
		return errJoin
	}
	var out strings.Builder
	for i, e := range list {
		if i > 0 {
			out.WriteString(between)
		}
		switch e := e.(type) {
		case nil:
		case string:
			out.WriteString(e)
		case []any, map[string]any:
			return errJoin
		default:
			enc, err := gojq.Marshal(e)
			if err != nil {
				return err
			}
			out.Write(enc)
		}
		if out.Len() > smallBytes {
			return errSmall
		}
	}
	return out.String()
}
