package tools

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"sync"
)

// definitionDigest identifies what a caller relies on.
func definitionDigest(t *Tool) string {
	d := digests.Get().(*digest)
	d.definition(t)
	sum := sha256.Sum256(*d)
	if *d = (*d)[:0]; cap(*d) <= maxKeptDigest {
		digests.Put(d)
	}
	return hex.EncodeToString(sum[:])
}

// digests lends memory, of which most definitions need a few thousand bytes.
var digests = sync.Pool{New: func() any { return new(digest) }}

const maxKeptDigest = 64 << 10

func (d *digest) definition(t *Tool) {
	d.text(t.Name)
	d.text(t.Title)
	d.bytes(t.Definition)
	d.within(t.Definition, []byte(t.Description))
	d.within(t.Definition, t.ArgsSchema)
	d.within(t.Definition, t.OutSchema)
	d.text(string(t.SideEffects))
	d.safety(&t.Safety)
	d.text(t.SafetyNotes)
	d.text(string(t.Kind))
	for _, inj := range t.Injected {
		d.text(inj.Arg)
	}
}

// digest is what is hashed: texts, with where one ends as a part of it.
type digest []byte

func (d *digest) text(s string) {
	d.number(len(s))
	*d = append(*d, s...)
}

func (d *digest) bytes(b []byte) {
	d.number(len(b))
	*d = append(*d, b...)
}

func (d *digest) number(n int) { *d = binary.LittleEndian.AppendUint64(*d, uint64(n)) }

// within adds a text that is usually a part of another which is there already:
// then where it stands says as much.
func (d *digest) within(whole, part []byte) {
	at := -1
	if len(part) > 0 {
		at = bytes.Index(whole, part)
	}
	if d.number(at); at < 0 {
		d.bytes(part)
		return
	}
	d.number(len(part))
}

// safety adds facts as encoding/json writes them.
func (d *digest) safety(s *Safety) {
	start := len(*d)
	d.number(0)
	for _, fact := range [...]struct {
		opening string
		flag    Flag
	}{
		{`{"ReadOnly":"`, s.ReadOnly}, {`","Destructive":"`, s.Destructive}, {`","Idempotent":"`, s.Idempotent},
		{`","OpenWorld":"`, s.OpenWorld}, {`","Filesystem":"`, s.Filesystem}, {`","Process":"`, s.Process},
		{`","Spend":"`, s.Spend}, {`","NeedsConfirmation":"`, s.NeedsConfirmation},
	} {
		*d = append(append(*d, fact.opening...), fact.flag.String()...)
	}
	*d = append(append(*d, `","WorkspaceRoot":`...), quotedText(s.WorkspaceRoot)...)
	*d = append(append(*d, `,"Redaction":`...), quotedText(s.Redaction)...)
	*d = append(*d, '}')
	binary.LittleEndian.PutUint64((*d)[start:], uint64(len(*d)-start-8))
}

func quotedText(s string) []byte {
	if s == "" {
		return []byte(`""`)
	}
	quoted, _ := json.Marshal(s) // a string can be written
	return quoted
}
