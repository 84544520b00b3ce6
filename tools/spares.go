package tools

import (
	"encoding/json"
	"sync/atomic"
)

// spares are copies of what the slices of one tool hold, one after the other.
// Each is handed out once and then belongs to who got it. To make several at a
// time costs little more than to make one.
type spares struct {
	bytes []byte
	strs  []string
	count int64
	taken atomic.Int64
}

// Limits of the spares of one tool. Whoever keeps one copy keeps its neighbours'
// memory too.
const (
	maxSpares     = 16
	maxSpareBytes = 8 << 10
)

// copyTool is cloneTool, from the spares of the tool.
func (b *binding) copyTool(out *Tool) {
	*out = b.tool
	if b.bytes+b.strs > 0 {
		b.takeSpare(out)
	}
	copyRest(out, &b.tool)
}

// takeSpare gives out slices of its own.
func (b *binding) takeSpare(out *Tool) {
	s := b.spare.Load()
	at := int64(0)
	if s != nil {
		at = s.taken.Add(1) - 1
	}
	if s == nil || at >= s.count {
		s, at = b.moreSpares(s), 0
	}
	bytes, strs := s.bytes[int(at)*b.bytes:], s.strs[int(at)*b.strs:]
	out.ArgsSchema, bytes = cut(out.ArgsSchema, bytes)
	out.OutSchema, bytes = cut(out.OutSchema, bytes)
	out.Definition, _ = cut(out.Definition, bytes)
	out.Tags, strs = cut(out.Tags, strs)
	out.AuthScopes, strs = cut(out.AuthScopes, strs)
	out.HandlesMIME, strs = cut(out.HandlesMIME, strs)
	out.Tenants, _ = cut(out.Tenants, strs)
}

// cut returns the part of copies that is a copy of own, without room behind its
// end, and what follows.
func cut[S ~[]T, T any](own S, copies []T) (S, []T) {
	n := len(own)
	if own == nil {
		return nil, copies
	}
	return copies[:n:n], copies[n:]
}

// moreSpares makes twice as many as the last time, the first of which is taken.
// Those that others make at the same time are as good.
func (b *binding) moreSpares(last *spares) *spares {
	s := &spares{count: 1}
	if last != nil {
		s.count = max(1, min(2*last.count, maxSpares, maxSpareBytes/int64(b.bytes+16*b.strs)))
	}
	s.taken.Store(1)
	s.bytes = make([]byte, 0, int(s.count)*b.bytes)
	s.strs = make([]string, 0, int(s.count)*b.strs)
	t := &b.tool
	for range s.count {
		for _, text := range []json.RawMessage{t.ArgsSchema, t.OutSchema, t.Definition} {
			s.bytes = append(s.bytes, text...)
		}
		for _, list := range [][]string{t.Tags, t.AuthScopes, t.HandlesMIME, t.Tenants} {
			s.strs = append(s.strs, list...)
		}
	}
	b.spare.Store(s)
	return s
}
