package tools

import "errors"

// maxChain is how many errors are looked at behind one. Of a chain that leads
// in a circle, or that splits again and again, package errors would never find
// the end.
const maxChain = 100_000

var (
	errEndless    = errors.New("tools: the error leads in a circle")
	errSpeechless = errors.New("tools: the error panics when it is asked what it is")
)

// finite returns err, or an error in its place when what it wraps has no end, or
// when it panics, as one that is a nil pointer may: errors are read where nothing
// is left that a panic could be taken for.
func finite(err error) (sound error) {
	defer func() {
		if recover() != nil {
			sound = &Error{Class: ErrClassPermanent, Err: errSpeechless}
		}
	}()
	left := maxChain
	if ends(err, &left) {
		_ = err.Error()
		_ = errors.Is(err, errSpeechless)
		return err
	}
	if e, ok := err.(*Error); ok {
		c := *e
		c.Err = errEndless
		return &c
	}
	return &Error{Class: ErrClassPermanent, Err: errEndless}
}

// ends reports whether everything behind err is found with what is left.
func ends(err error, left *int) bool {
	for err != nil {
		if *left--; *left < 0 {
			return false
		}
		switch e := err.(type) {
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		case interface{ Unwrap() []error }:
			for _, each := range e.Unwrap() {
				if !ends(each, left) {
					return false
				}
			}
			return true
		default:
			return true
		}
	}
	return true
}
