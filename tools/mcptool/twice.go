package mcptool

import (
	"crypto/sha256"
	"hash"
	"io"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// sameTwice reports whether the structured content of a result is its only text
// once more, as many servers send it. It is kept once then.
func (a *aside) sameTwice(r *mcpwire.LongResult) (bool, error) {
	if len(r.Parts) != 2 {
		return false, nil
	}
	text, structured := r.Parts[0], r.Parts[1]
	if text.Block < 0 {
		text, structured = structured, text
	}
	content, _ := rawjson.Get(r.Skeleton, "content")
	if text.Key != "text" || structured.Key != "structuredContent" || rawjson.Len(content) != 1 {
		return false, nil
	}
	one, err := compactSum(r.Text(text))
	if err != nil {
		return false, err
	}
	other, err := compactSum(r.JSON(structured))
	return one == other, err
}

// compactSum returns the digest of JSON without the white space between its
// tokens.
func compactSum(r io.Reader) ([sha256.Size]byte, error) {
	c := &compacter{to: sha256.New()}
	if _, err := io.Copy(c, r); err != nil {
		return [sha256.Size]byte{}, err
	}
	return [sha256.Size]byte(c.to.Sum(nil)), nil
}

// A compacter leaves out the white space outside of strings.
type compacter struct {
	to       hash.Hash
	kept     []byte
	inString bool
	escaped  bool
}

// Write implements io.Writer. It never fails.
func (c *compacter) Write(p []byte) (int, error) {
	c.kept = c.kept[:0]
	for _, b := range p {
		if c.keeps(b) {
			c.kept = append(c.kept, b)
		}
	}
	c.to.Write(c.kept)
	return len(p), nil
}

func (c *compacter) keeps(b byte) bool {
	switch {
	case !c.inString:
		c.inString = b == '"'
		return b != ' ' && b != '\n' && b != '\t' && b != '\r'
	case c.escaped:
		c.escaped = false
	case b == '\\':
		c.escaped = true
	case b == '"':
		c.inString = false
	}
	return true
}
