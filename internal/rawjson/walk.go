package rawjson

// DefaultMaxDepth is how deep arrays and objects may nest unless an option says
// otherwise.
const DefaultMaxDepth = 1000

// A Walker scans values of one document and finds duplicate keys on the way.
// Reset it for each document. It keeps its memory and is for one goroutine.
type Walker struct {
	// Keys tracks the keys of the open objects.
	Keys KeySet
	// MaxDepth bounds nesting.
	MaxDepth int
	// Trusted skips the search for duplicates, for bytes walked before.
	Trusted bool

	doc []byte
}

// Reset prepares the walker for doc, not trusted, and reports false for a document that is
// too large to track.
func (w *Walker) Reset(doc []byte, maxDepth int) bool {
	w.Trusted = false
	w.doc, w.MaxDepth = doc, maxDepth
	return w.Keys.Reset(doc)
}

// Value scans the value that starts at i, where white space has been skipped.
// depth is how many arrays and objects are open around it. It returns the
// offset after the value, or that of the fault; for a duplicate that is the
// opening quote of the second key.
func (w *Walker) Value(i, depth int) (int, Fault) {
	b := w.doc
	if i >= len(b) {
		return len(b), FaultEnd
	}
	switch b[i] {
	case '"':
		end, _, fault := ScanString(b, i)
		return end, fault
	case '{':
		return w.object(i, depth+1)
	case '[':
		return w.array(i, depth+1)
	case 't', 'f', 'n':
		return ScanLiteral(b, i)
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		end, _, fault := ScanNumber(b, i)
		return end, fault
	}
	return i, FaultValue
}

func (w *Walker) array(i, depth int) (int, Fault) {
	if depth > w.MaxDepth {
		return i, FaultDepth
	}
	i, done, fault := FirstElement(w.doc, i, ']')
	for !done && fault == FaultNone {
		if i, fault = w.Value(i, depth); fault != FaultNone {
			return i, fault
		}
		i, done, fault = NextElement(w.doc, i, ']')
	}
	return i, fault
}

func (w *Walker) object(i, depth int) (int, Fault) {
	if depth > w.MaxDepth {
		return i, FaultDepth
	}
	mark := w.Keys.Open()
	i, done, fault := FirstElement(w.doc, i, '}')
	for !done && fault == FaultNone {
		if i, fault = w.member(i, depth, mark); fault != FaultNone {
			return i, fault
		}
		i, done, fault = NextElement(w.doc, i, '}')
	}
	w.Keys.Close(mark)
	return i, fault
}

func (w *Walker) member(i, depth, mark int) (int, Fault) {
	start := i
	end, value, plain, fault := ScanKey(w.doc, i)
	if fault != FaultNone {
		return value, fault
	}
	if !w.Trusted && !w.Keys.Add(mark, start, end, plain) {
		return start, FaultDuplicate
	}
	return w.Value(value, depth)
}

// FirstElement steps into the array or object whose opening bracket is at i. It
// returns the offset of the first element or key, or done and the offset after
// the closing bracket.
func FirstElement(b []byte, i int, closing byte) (next int, done bool, fault Fault) {
	i = SkipSpace(b, i+1)
	if i >= len(b) {
		return i, false, FaultEnd
	}
	if b[i] == closing {
		return i + 1, true, FaultNone
	}
	return i, false, FaultNone
}

// NextElement steps from the end of one element at i to the start of the next,
// or reports done and the offset after the closing bracket.
func NextElement(b []byte, i int, closing byte) (next int, done bool, fault Fault) {
	i = SkipSpace(b, i)
	switch {
	case i >= len(b):
		return i, false, FaultEnd
	case b[i] == closing:
		return i + 1, true, FaultNone
	case b[i] != ',':
		return i, false, FaultSeparator
	}
	return SkipSpace(b, i+1), false, FaultNone
}

// ScanKey scans the object key that starts at i and the colon after it. It
// returns the offset after the key's closing quote, that of the member's value,
// and whether the key is free of escapes. On a fault, value is its offset.
func ScanKey(b []byte, i int) (end, value int, plain bool, fault Fault) {
	if i >= len(b) {
		return i, i, false, FaultEnd
	}
	if b[i] != '"' {
		return i, i, false, FaultKey
	}
	if end, plain, fault = ScanString(b, i); fault != FaultNone {
		return end, end, plain, fault
	}
	value, fault = ScanColon(b, end)
	return end, value, plain, fault
}

// ScanColon reads the colon behind a key that ends before i. value is where the
// value starts.
func ScanColon(b []byte, i int) (value int, fault Fault) {
	i = SkipSpace(b, i)
	if i >= len(b) {
		return i, FaultEnd
	}
	if b[i] != ':' {
		return i, FaultColon
	}
	return SkipSpace(b, i+1), FaultNone
}
