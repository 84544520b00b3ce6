package artifacts_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"

	"github.com/toolcrib/toolcrib/artifacts"
	"github.com/toolcrib/toolcrib/store/sqlstore"
	"github.com/toolcrib/toolcrib/tools"
)

func TestTheBucketIsOpenedWithTheFirstContent(t *testing.T) {
	records, err := sqlstore.OpenMemory(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	bucket, opened, fault := memblob.OpenBucket(nil), 0, errors.New("no room")
	t.Cleanup(func() { _ = errors.Join(bucket.Close(), records.Close()) })
	s := artifacts.New(nil, records, &artifacts.Options{OpenBucket: func() (*blob.Bucket, error) {
		opened++
		return bucket, fault
	}})
	if _, _, err := s.List(ada(t), artifacts.Listing{}); err != nil || opened != 0 {
		t.Errorf("opened %d times to list nothing: %v", opened, err)
	}
	if _, err := s.Put(ada(t), strings.NewReader("x"), artifacts.Meta{}); !errors.Is(err, fault) {
		t.Errorf("%v, want the error of opening", err)
	}
	if used, _, err := s.Usage(ada(t)); err != nil || used.Count != 0 {
		t.Errorf("what could not be kept takes %+v: %v", used, err)
	}
	fault = nil
	for range 2 {
		if _, err := s.Put(ada(t), strings.NewReader("x"), artifacts.Meta{}); err != nil {
			t.Error(err)
		}
	}
	if opened != 2 {
		t.Errorf("opened %d times, want once in vain and once", opened)
	}
}

// Whoever wanted something kept learns that there is no room, and the operator where.
// What the content itself runs into is nobody's fault here.
func TestNoRoom(t *testing.T) {
	records, err := sqlstore.OpenMemory(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer records.Close()
	var log bytes.Buffer
	full := &fs.PathError{Op: "mkdir", Path: "/srv/data", Err: syscall.ENOSPC}
	s := artifacts.New(nil, records, &artifacts.Options{Logger: slog.New(slog.NewTextHandler(&log, nil)),
		OpenBucket: func() (*blob.Bucket, error) { return nil, full }})
	_, err = s.Put(ada(t), strings.NewReader("x"), artifacts.Meta{Tool: "files.read"})
	var told *tools.Error
	if !errors.Is(err, artifacts.ErrNoRoom) || !errors.As(err, &told) || !told.Retryable || strings.Contains(err.Error(), "/srv") {
		t.Errorf("%v", err)
	}
	for _, says := range []string{"content could not be kept", "files.read", "/srv/data", "no space left"} {
		if !strings.Contains(log.String(), says) {
			t.Errorf("the log does not say %q: %s", says, log.String())
		}
	}
	log.Reset()
	open := artifacts.New(memblob.OpenBucket(nil), records, &artifacts.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if _, err := open.Put(ada(t), iotest.ErrReader(syscall.ENOSPC), artifacts.Meta{}); err != syscall.ENOSPC || log.Len() > 0 {
		t.Errorf("content that fails: %v, and in the log %q", err, log.String())
	}
}

func TestAStoreWithoutABucketSaysSo(t *testing.T) {
	records, err := sqlstore.OpenMemory(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer records.Close()
	if _, err := artifacts.New(nil, records, nil).Put(ada(t), strings.NewReader("x"), artifacts.Meta{}); err == nil || !strings.Contains(err.Error(), "OpenBucket") {
		t.Errorf("%v", err)
	}
}

func TestNamesHaveNoControlCharacters(t *testing.T) {
	f := newFixture(t, artifacts.Options{})
	info := f.put(t, ada(t), "x", artifacts.Meta{Name: "a\nb\tc\x1b[2Jd\u0085\x00.txt"})
	if info.Name != "abc[2Jd.txt" {
		t.Errorf("kept as %q", info.Name)
	}
}

func TestFetchTakesTheURIOfARef(t *testing.T) {
	f := newFixture(t, artifacts.Options{})
	info := f.put(t, ada(t), "one\ntwo\n", artifacts.Meta{})
	for _, args := range []artifacts.FetchArgs{{}, {FromLine: 1, ToLine: 2}} {
		args.Ref = "artifact://" + info.Ref
		if got := f.fetch(t, args); got.Error != "" || !strings.HasPrefix(got.Content, "one\ntwo") || got.Ref != info.Ref {
			t.Errorf("%+v", got)
		}
	}
}

func TestFetchNamesTheOffsetThatWasAskedFor(t *testing.T) {
	f := newFixture(t, artifacts.Options{})
	info := f.put(t, ada(t), "0123456789", artifacts.Meta{})
	for _, offset := range []int64{11, 12, 500} {
		got := f.fetch(t, artifacts.FetchArgs{Ref: info.Ref, Offset: offset})
		if want := fmt.Sprintf("offset %d is outside of the content, which has 10 bytes", offset); got.Error != want {
			t.Errorf("%q, want %q", got.Error, want)
		}
	}
}
