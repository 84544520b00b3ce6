package artifacts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"time"

	"gocloud.dev/blob"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/store"
	"github.com/toolcrib/toolcrib/tools"
)

// chunk is how much of a stream is in memory.
const chunk = 64 << 10

// Put stores what r gives until its end, for the caller on ctx. It holds a small
// part of the content in memory at a time. The artifact can be read when Put has
// returned; when it fails, or ctx ends first, there is nothing of it to be seen
// and nothing counts against a quota. Errors: ErrQuota, ErrTooLarge, ErrNoRoom,
// tools.ErrIdentityRequired, what r returns, and what the bucket and the store
// return.
func (s *Store) Put(ctx context.Context, r io.Reader, meta Meta) (Info, error) {
	from := &source{in: r}
	info, err := s.put(ctx, from, meta)
	if err != nil {
		return Info{}, s.lost(ctx, meta, from, err)
	}
	return info, nil
}

func (s *Store) put(ctx context.Context, r io.Reader, meta Meta) (Info, error) {
	id, err := s.caller(ctx)
	if err != nil {
		return Info{}, err
	}
	rec, err := s.draft(id, meta)
	if err != nil {
		return Info{}, err
	}
	bucket, err := s.bucket()
	if err != nil {
		return Info{}, err
	}
	first := make([]byte, chunk)
	n, whole, err := readChunk(r, first)
	if err != nil {
		return Info{}, err
	}
	rec.Info.MIME = mediaType(meta.MIME, first[:n])
	u := &upload{store: s, bucket: bucket, rec: rec, hash: sha256.New(), buffer: first}
	if err := u.begin(ctx, int64(n), whole); err != nil {
		return Info{}, err
	}
	return u.run(ctx, n, whole, r)
}

// Offload implements tools.Sink.
func (s *Store) Offload(ctx context.Context, about tools.Offload, r io.Reader) (tools.ArtifactRef, error) {
	info, err := s.Put(ctx, r, Meta{MIME: about.MIME, Name: about.Name, Tool: about.Tool, CallID: about.CallID})
	if err != nil {
		return tools.ArtifactRef{}, err
	}
	return info.Artifact(), nil
}

// Retract implements tools.Retractor.
func (s *Store) Retract(ctx context.Context, ref string) error { return s.Delete(ctx, ref) }

// draft makes the record of a new artifact.
func (s *Store) draft(id identity.Identity, meta Meta) (*record, error) {
	scope := meta.Scope
	if scope == 0 {
		scope = narrowest(id)
	}
	o, ok := owner(id, scope)
	if !ok {
		return nil, refusal(store.ErrInvalid, "the caller's identity has no %s to store an artifact for", scope)
	}
	ttl := meta.TTL
	if ttl <= 0 {
		ttl = s.opts.TTL
	}
	now := s.opts.Now()
	ref := newRef(scope)
	return &record{key: store.Key{Collection: collection, Owner: o, Name: ref}, revision: store.Absent, State: pending,
		Info: Info{Ref: ref, Name: fileName(meta.Name), Tool: meta.Tool, CallID: meta.CallID, Scope: scope.String(), User: id.UserID,
			Created: now, Expires: now.Add(min(ttl, s.opts.MaxTTL))}}, nil
}

// An upload is an artifact whose content arrives.
type upload struct {
	store   *Store
	bucket  *blob.Bucket
	rec     *record
	hash    hash.Hash
	buffer  []byte
	size    int64
	renewed time.Time // when the record was last written
}

// firstStep is what an upload of unknown length takes of the quotas at first.
// Each later step doubles what it has, up to maxStep at a time.
const (
	firstStep = 1 << 20
	maxStep   = 32 << 20
)

// begin makes the pending record and takes the first bytes of the quotas: exactly
// those that are there when all is.
func (u *upload) begin(ctx context.Context, have int64, whole bool) error {
	if whole {
		return u.take(ctx, have, have, 1)
	}
	return u.take(ctx, have, firstStep, 1)
}

// run copies the content and publishes the artifact, or undoes all of it.
func (u *upload) run(ctx context.Context, n int, whole bool, r io.Reader) (info Info, err error) {
	done := false
	defer func() {
		if !done { // also when r panics
			u.undo(ctx)
		}
	}()
	if err := u.copy(ctx, n, whole, r); err != nil {
		return Info{}, err
	}
	u.rec.Info.SizeBytes, u.rec.Info.SHA256 = u.size, hex.EncodeToString(u.hash.Sum(nil))
	if err := u.publish(ctx); err != nil {
		return Info{}, err
	}
	done = true
	return u.rec.Info, nil
}

func (u *upload) copy(ctx context.Context, n int, whole bool, r io.Reader) error {
	// Ending this context before Close makes the bucket drop what it has.
	writing, abort := context.WithCancel(ctx)
	defer abort()
	var file *os.File // when the bucket is a folder
	w, err := u.bucket.NewWriter(writing, blobKey(u.rec.key), &blob.WriterOptions{ContentType: u.rec.Info.MIME, DisableContentTypeDetection: true,
		BeforeWrite: func(as func(any) bool) error { as(&file); return nil }})
	if err != nil {
		return fmt.Errorf("artifacts: %w", err)
	}
	closing := false
	defer func() {
		if !closing { // also when r panics
			abort()
			_ = w.Close() // it says that the writing was aborted
		}
	}()
	if err := u.fill(ctx, w, n, whole, r); err != nil {
		return err
	}
	if err := u.keepAlive(ctx); err != nil {
		return err
	}
	if file != nil {
		if err := file.Sync(); err != nil {
			return fmt.Errorf("artifacts: %w", err)
		}
	}
	closing = true
	if err := w.Close(); err != nil {
		return fmt.Errorf("artifacts: %w", err)
	}
	return nil
}

// fill writes the first n bytes of the buffer and then what r gives.
func (u *upload) fill(ctx context.Context, w io.Writer, n int, whole bool, r io.Reader) error {
	for {
		if err := u.append(ctx, w, u.buffer[:n]); err != nil {
			return err
		}
		if whole {
			return nil
		}
		var err error
		if n, whole, err = readChunk(r, u.buffer); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// readChunk fills p as far as r goes, and reports whether r has ended. Unlike
// io.ReadFull it tells an end from a source that broke off and says
// io.ErrUnexpectedEOF.
func readChunk(r io.Reader, p []byte) (n int, whole bool, err error) {
	for n < len(p) {
		m, err := r.Read(p[n:])
		n += m
		if err == io.EOF {
			return n, true, nil
		}
		if err != nil {
			return n, false, err
		}
	}
	return n, false, nil
}

func (u *upload) append(ctx context.Context, w io.Writer, p []byte) error {
	need := u.size + int64(len(p))
	if limit := u.store.opts.MaxBytes; limit >= 0 && need > limit {
		return refusal(ErrTooLarge, "the content is larger than an artifact may be, %d bytes", limit)
	}
	if need > u.rec.Taken {
		step := min(max(u.rec.Taken, firstStep), maxStep)
		if err := u.take(ctx, need-u.rec.Taken, step, 0); err != nil {
			return err
		}
	}
	u.hash.Write(p)
	u.size = need
	if _, err := w.Write(p); err != nil {
		return fmt.Errorf("artifacts: %w", err)
	}
	return nil
}

// take takes between need and step bytes of the quotas for the upload, and says
// in its record that it goes on. made is 1 for a new artifact.
func (u *upload) take(ctx context.Context, need, step, made int64) error {
	return u.account(ctx, func(have usages, next *record) (due time.Time, err error) {
		granted, err := have.take(need, max(step, need), made)
		next.Taken += granted
		return u.store.opts.Now().Add(patience), err
	})
}

// publish makes the artifact visible, and gives back what it took in advance.
func (u *upload) publish(ctx context.Context) error {
	return u.account(ctx, func(have usages, next *record) (due time.Time, err error) {
		have.give(next.Taken-u.size, 0)
		next.State, next.Taken = ready, u.size
		return next.Info.Expires, nil
	})
}

// account changes the accounts and the upload's record in one step.
func (u *upload) account(ctx context.Context, change func(have usages, next *record) (due time.Time, err error)) error {
	now := u.store.opts.Now()
	var next record
	revision, err := u.store.account(ctx, u.rec.payer(), func(have usages) (store.Write, error) {
		next = *u.rec
		due, err := change(have, &next)
		return next.write(due), err
	})
	if err != nil {
		return lost(err)
	}
	next.revision = revision
	*u.rec, u.renewed = next, now
	return nil
}

// keepAlive says that the upload goes on, so that nobody gives it up before the
// content is in its place.
func (u *upload) keepAlive(ctx context.Context) error {
	now := u.store.opts.Now()
	if now.Sub(u.renewed) < patience/2 {
		return nil
	}
	w := u.rec.write(now.Add(patience))
	revisions, err := u.store.records.Apply(ctx, store.Batch{Writes: []store.Write{w}})
	if err != nil {
		return lost(err)
	}
	u.rec.revision, u.renewed = revisions[0], now
	return nil
}

// lost explains that an upload's record was taken away.
func lost(err error) error {
	if errors.Is(err, errOvertaken) || errors.Is(err, store.ErrConflict) {
		return refusal(store.ErrConflict, "storing the content took too long, and was given up")
	}
	return err
}

// undoTime bounds how long an upload that failed tidies up.
const undoTime = 15 * time.Second

// undo removes what an upload has left, also when its context has ended. What it
// cannot remove is left to Collect.
func (u *upload) undo(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	if err := u.store.discard(ctx, u.rec.key, store.Any); err != nil {
		u.store.opts.Logger.WarnContext(ctx, "what is left of an upload could not be removed yet", "error", err)
	}
}
