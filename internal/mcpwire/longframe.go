package mcpwire

import (
	"io"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// frame reads the message, from its first byte to the last.
func (s *longScanner) frame() error {
	if err := s.space(); err != nil {
		return err
	}
	ids := 0
	err := s.object(0, func(key string) error {
		switch key {
		case "jsonrpc":
			raw, err := s.catchValue(maxKey)
			s.version = string(raw) == `"2.0"`
			return err
		case "id":
			ids++
			raw, err := s.catchValue(maxIDLength)
			s.id = ID(validID(raw))
			return err
		case "result":
			s.results++
			return s.result()
		case "error":
			raw, err := s.catchValue(maxKey)
			s.otherwise = s.otherwise || string(raw) != "null"
			return err
		case "method", "params":
			s.otherwise = true
		}
		return s.value(0)
	})
	if err != nil {
		return err
	}
	s.otherwise = s.otherwise || !s.version || s.id == "" || ids != 1 || s.results != 1
	return s.nothingMore()
}

// nothingMore makes sure that only white space follows.
func (s *longScanner) nothingMore() error {
	for {
		if s.pos == s.end {
			if err := s.more(); err == io.EOF {
				return nil
			} else if err != nil {
				return err
			}
		}
		if rawjson.SkipSpace(s.buf[:s.end], s.pos) == s.pos {
			return errMalformed
		}
		s.pos = rawjson.SkipSpace(s.buf[:s.end], s.pos)
	}
}

// catchValue consumes a value and returns it, or nil where it has more bytes
// than the limit.
func (s *longScanner) catchValue(limit int) ([]byte, error) {
	c := &catch{limit: limit}
	s.caught = c
	err := s.value(0)
	s.caught = nil
	if err != nil || c.over {
		return nil, err
	}
	return c.raw, nil
}

// result reads the result.
func (s *longScanner) result() error {
	s.from = s.offset()
	defer func() { s.keep, s.to = false, s.offset() }()
	s.skeleton, s.parts, s.keep = s.skeleton[:0], nil, !s.heads
	c, err := s.peek()
	if err != nil {
		return err
	}
	switch {
	case c != '{':
		s.otherwise = true
		s.keep = false
		return s.value(0)
	case s.heads:
		return s.headMembers()
	}
	seen := map[string]bool{}
	return s.object(0, func(key string) error {
		switch key {
		case "content", "contents":
			s.once(seen, key)
			s.list = key
			return s.blocks()
		case "structuredContent":
			s.once(seen, key)
			return s.leaveOut(LongPart{Block: -1, Key: key}, "null", 1)
		}
		return s.value(1)
	})
}

// once notes that a member stands in an object, which may be only one of its
// name.
func (s *longScanner) once(seen map[string]bool, key string) {
	s.ambiguous = s.ambiguous || seen[key]
	seen[key] = true
}

// headMembers makes a skeleton of the short members of the result.
func (s *longScanner) headMembers() error {
	s.skeleton = append(s.skeleton, '{')
	err := s.object(0, func(key string) error {
		raw, err := s.catchValue(longMember)
		if err != nil || raw == nil || len(s.skeleton)+len(raw) > 16*longMember {
			return err
		}
		if len(s.skeleton) > 1 {
			s.skeleton = append(s.skeleton, ',')
		}
		s.skeleton = append(rawjson.AppendQuoted(s.skeleton, key), ':')
		s.skeleton = append(s.skeleton, raw...)
		return nil
	})
	s.skeleton = append(s.skeleton, '}')
	return err
}

// blocks reads a list of content blocks, or of contents of resources.
func (s *longScanner) blocks() error {
	c, err := s.peek()
	if err != nil || c != '[' {
		return orValue(s, err, 1)
	}
	return s.array(1, s.block)
}

// orValue reads a value of another kind than was looked for, unless looking
// failed.
func orValue(s *longScanner, err error, depth int) error {
	if err != nil {
		return err
	}
	return s.value(depth)
}

// block reads one element of it.
func (s *longScanner) block(i int) error {
	c, err := s.peek()
	if err != nil || c != '{' {
		return orValue(s, err, 2)
	}
	seen := map[string]bool{}
	return s.object(2, func(key string) error {
		switch key {
		case "type":
			s.once(seen, key)
		case "text", "data", "blob":
			s.once(seen, key)
			return s.longText(LongPart{Block: i, Key: key}, 3)
		case "resource":
			s.once(seen, key)
			return s.resource(i)
		}
		return s.value(3)
	})
}

// resource reads the resource that a block embeds.
func (s *longScanner) resource(i int) error {
	c, err := s.peek()
	if err != nil || c != '{' {
		return orValue(s, err, 3)
	}
	seen := map[string]bool{}
	return s.object(3, func(key string) error {
		if key == "text" || key == "blob" {
			s.once(seen, key)
			return s.longText(LongPart{Block: i, Key: "resource/" + key}, 4)
		}
		return s.value(4)
	})
}

// longText reads a value that is left out if it is a long string.
func (s *longScanner) longText(p LongPart, depth int) error {
	c, err := s.peek()
	if err != nil || c != '"' {
		return orValue(s, err, depth)
	}
	p.List = s.list
	return s.leaveOut(p, `""`, depth)
}

// leaveOut reads a value and, if it is long, makes it a part; the skeleton has
// instead in its place.
func (s *longScanner) leaveOut(p LongPart, instead string, depth int) error {
	p.from, s.hole = s.offset(), len(s.skeleton)
	err := s.value(depth)
	s.hole = -1
	if s.keep || err != nil {
		return err
	}
	p.to = s.offset()
	s.parts = append(s.parts, p)
	s.skeleton, s.keep = append(s.skeleton, instead...), true
	return nil
}
