package artifacts

import (
	"context"
	"fmt"
	"io"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/toolcrib/toolcrib/store"
)

// Stat describes an artifact of the caller's, or returns ErrNotFound.
func (s *Store) Stat(ctx context.Context, ref string) (Info, error) {
	id, err := s.caller(ctx)
	if err != nil {
		return Info{}, err
	}
	r, err := s.find(ctx, id, ref)
	if err != nil {
		return Info{}, err
	}
	return r.Info, nil
}

// Section is a part of an artifact's content. The zero value is all of it.
type Section struct {
	// Offset is the first byte, counted from 0.
	Offset int64
	// Length is the number of bytes; zero or less means up to the end, and so
	// does more than there are.
	Length int64
}

// Reader reads a section of an artifact. It must be closed.
type Reader struct {
	// Info describes the whole artifact.
	Info Info
	// Offset and Length are the section that is read.
	Offset, Length int64

	content io.ReadCloser
	left    int64
}

// Read returns io.ErrUnexpectedEOF when the bucket has less than the artifact
// should hold.
func (r *Reader) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n, err := r.content.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	if err == io.EOF && r.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// Close ends the reading.
func (r *Reader) Close() error { return r.content.Close() }

// Open reads a section of an artifact of the caller's. It returns ErrNotFound,
// or ErrRange when the section begins behind the end.
func (s *Store) Open(ctx context.Context, ref string, section Section) (*Reader, error) {
	id, err := s.caller(ctx)
	if err != nil {
		return nil, err
	}
	rec, err := s.find(ctx, id, ref)
	if err != nil {
		return nil, err
	}
	return s.section(ctx, rec, section)
}

func (s *Store) section(ctx context.Context, rec *record, section Section) (*Reader, error) {
	size := rec.Info.SizeBytes
	if section.Offset < 0 || section.Offset > size {
		return nil, refusal(ErrRange, "offset %d is outside of the content, which has %d bytes", section.Offset, size)
	}
	r := &Reader{Info: rec.Info, Offset: section.Offset, Length: size - section.Offset}
	if section.Length > 0 {
		r.Length = min(r.Length, section.Length)
	}
	r.left = r.Length
	bucket, err := s.bucket()
	if err != nil {
		return nil, err
	}
	r.content, err = bucket.NewRangeReader(ctx, blobKey(rec.key), r.Offset, r.Length, nil)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil, notFound()
	}
	if err != nil {
		return nil, fmt.Errorf("artifacts: %w", err)
	}
	return r, nil
}

// Listing selects a page of the caller's artifacts.
type Listing struct {
	// After is the ref that the page comes after; empty begins.
	After string
	// Limit bounds the page; zero means 100, and the most is 1000.
	Limit int
}

// List returns artifacts that the caller can read, sorted by ref, and whether
// there are more.
func (s *Store) List(ctx context.Context, l Listing) (page []Info, more bool, err error) {
	id, err := s.caller(ctx)
	if err != nil {
		return nil, false, err
	}
	limit := store.PageSize(l.Limit)
	for _, scope := range scopes {
		o, ok := owner(id, scope)
		if !ok {
			continue
		}
		page, err = s.listOwner(ctx, o, l.After, limit+1, page)
		if err != nil {
			return nil, false, err
		}
		if len(page) > limit {
			return page[:limit], true, nil
		}
	}
	return page, false, nil
}

// listOwner appends an owner's artifacts that can be read, until there are limit
// of them.
func (s *Store) listOwner(ctx context.Context, o store.Owner, after string, limit int, page []Info) ([]Info, error) {
	r := store.Range{Collection: collection, Owner: o, After: after, Limit: limit}
	for len(page) < limit {
		found, err := s.records.List(ctx, r)
		if err != nil {
			return nil, err
		}
		for _, f := range found.Records {
			r.After = f.Key.Name
			rec, err := decode(f)
			if err != nil {
				return nil, err
			}
			if s.visible(ctx, rec) && len(page) < limit {
				page = append(page, rec.Info)
			}
		}
		if !found.More {
			break
		}
	}
	return page, nil
}

// leftovers are names in the bucket that begin with a content's own name: files
// that a process was writing when it ended.
func (s *Store) leftovers(ctx context.Context, name string) ([]string, error) {
	bucket, err := s.bucket()
	if err != nil {
		return nil, err
	}
	var names []string
	for list := bucket.List(&blob.ListOptions{Prefix: name}); ; {
		o, err := list.Next(ctx)
		if err == io.EOF {
			return names, nil
		}
		if err != nil {
			return nil, fmt.Errorf("artifacts: %w", err)
		}
		names = append(names, o.Key)
	}
}
