package artifacts_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/toolcrib/toolcrib/artifacts"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/store"
	"github.com/toolcrib/toolcrib/tools"
)

var wellFormed = regexp.MustCompile(`^art-[stu][a-z2-7]{26}$`)

func TestPutAndOpen(t *testing.T) {
	for _, size := range []int{0, 1, 100, 64 << 10, 64<<10 + 1, 3 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			f, ctx := newFileFixture(t, artifacts.Options{}), ada(t)
			content := strings.Repeat("0123456789", size/10+1)[:size]
			info := f.put(t, ctx, content, artifacts.Meta{MIME: "text/plain; charset=UTF-8", Name: "a.txt", Tool: "t", CallID: "c"})
			sum := sha256.Sum256([]byte(content))
			want := artifacts.Info{Ref: info.Ref, MIME: "text/plain; charset=UTF-8", Name: "a.txt", SizeBytes: int64(size), SHA256: hex.EncodeToString(sum[:]),
				Tool: "t", CallID: "c", Scope: "session", User: "ada", Created: f.clock.Now(), Expires: f.clock.Now().Add(7 * 24 * time.Hour)}
			if info != want || !wellFormed.MatchString(info.Ref) {
				t.Errorf("Put = %+v\nwant  %+v", info, want)
			}
			if got, err := f.Stat(ctx, info.Ref); err != nil || got != want {
				t.Errorf("Stat = %+v, %v", got, err)
			}
			if got, err := f.read(ctx, info.Ref, artifacts.Section{}); err != nil || got != content {
				t.Errorf("read %d bytes, %v", len(got), err)
			}
			tenant, user, err := f.Usage(ctx)
			if wanted := (artifacts.Usage{Bytes: int64(size), Count: 1}); err != nil || tenant != wanted || user != wanted {
				t.Errorf("Usage = %+v, %+v, %v", tenant, user, err)
			}
			if err := f.Delete(ctx, info.Ref); err != nil {
				t.Error(err)
			}
			f.empty(t)
		})
	}
}

func TestOpenSections(t *testing.T) {
	f, ctx := newFixture(t, artifacts.Options{}), ada(t)
	info := f.put(t, ctx, "0123456789", artifacts.Meta{})
	for _, c := range []struct {
		offset, length int64
		want           string
	}{{0, 0, "0123456789"}, {3, 2, "34"}, {3, 0, "3456789"}, {3, -1, "3456789"}, {8, 100, "89"}, {10, 0, ""}, {10, 5, ""}, {0, 1 << 62, "0123456789"}} {
		got, err := f.read(ctx, info.Ref, artifacts.Section{Offset: c.offset, Length: c.length})
		if err != nil || got != c.want {
			t.Errorf("%d+%d = %q, %v, want %q", c.offset, c.length, got, err, c.want)
		}
	}
	for _, offset := range []int64{-1, 11, 1 << 62} {
		if _, err := f.Open(ctx, info.Ref, artifacts.Section{Offset: offset}); !errors.Is(err, artifacts.ErrRange) {
			t.Errorf("offset %d = %v, want ErrRange", offset, err)
		}
	}
}

func TestMediaTypes(t *testing.T) {
	f, ctx := newFixture(t, artifacts.Options{}), ada(t)
	for _, c := range []struct{ given, content, want string }{
		{"application/json", "x", "application/json"},
		{"", `{"a":1}`, "application/json"},
		{"", `[1,2]`, "application/json"},
		{"", "[Section]\n", "text/plain; charset=utf-8"},
		{"", "hello", "text/plain; charset=utf-8"},
		{"", "\x89PNG\r\n\x1a\n", "image/png"},
		{"no type", "%PDF-1.7", "application/pdf"},
		{"text/x\r\nEvil: 1", "<html>", "text/html; charset=utf-8"},
		{"TEXT/Plain", "x", "text/plain"},
		{"", "", "text/plain; charset=utf-8"},
	} {
		if info := f.put(t, ctx, c.content, artifacts.Meta{MIME: c.given}); info.MIME != c.want {
			t.Errorf("%q of %q = %q, want %q", c.given, c.content, info.MIME, c.want)
		}
	}
}

// Whoever may not see an artifact is told what is told of one that is not there.
func TestScopes(t *testing.T) {
	f := newFixture(t, artifacts.Options{})
	callers := map[string]context.Context{
		"same session":  ada(t),
		"other session": as(t.Context(), "acme", "ada", "s2"),
		"no session":    as(t.Context(), "acme", "ada", ""),
		"other user":    as(t.Context(), "acme", "bob", "s1"),
		"no user":       as(t.Context(), "acme", "", ""),
		"other tenant":  as(t.Context(), "rival", "ada", "s1"),
	}
	sees := map[store.Scope]string{
		store.ScopeSession: "same session",
		store.ScopeUser:    "same session, other session, no session",
		store.ScopeTenant:  "same session, other session, no session, other user, no user",
	}
	for scope, who := range sees {
		info := f.put(t, ada(t), "secret", artifacts.Meta{Scope: scope})
		missing := info.Ref[:len(info.Ref)-4] + "aaaa"
		for name, ctx := range callers {
			_, wanted := f.Stat(ctx, missing)
			may := strings.Contains(who, name)
			_, statErr := f.Stat(ctx, info.Ref)
			_, openErr := f.Open(ctx, info.Ref, artifacts.Section{Offset: 1 << 40})
			fetched, err := f.Fetch(ctx, artifacts.FetchArgs{Ref: info.Ref})
			if err != nil {
				t.Error(err)
			}
			listed, _, err := f.List(ctx, artifacts.Listing{})
			if err != nil {
				t.Error(err)
			}
			inList := false
			for _, l := range listed {
				inList = inList || l.Ref == info.Ref
			}
			if may {
				if statErr != nil || fetched.Content != "secret" || !inList {
					t.Errorf("%s does not see what belongs to the %s: %v, %+v", name, scope, statErr, fetched)
				}
				continue
			}
			deleteErr := f.Delete(ctx, info.Ref)
			for what, err := range map[string]error{"Stat": statErr, "Open": openErr, "Delete": deleteErr} {
				if !errors.Is(err, artifacts.ErrNotFound) || err.Error() != wanted.Error() {
					t.Errorf("%s: %s of what belongs to the %s = %v, want %v", name, what, scope, err, wanted)
				}
			}
			if miss, _ := f.Fetch(ctx, artifacts.FetchArgs{Ref: missing}); miss.Error == "" || fetched.Error != miss.Error || fetched.MIME != "" || fetched.SizeBytes != 0 || inList {
				t.Errorf("%s: Fetch of what belongs to the %s = %+v, want as %+v", name, scope, fetched, miss)
			}
		}
	}
}

func TestWhoRemoves(t *testing.T) {
	f := newFixture(t, artifacts.Options{})
	shared := f.put(t, ada(t), "x", artifacts.Meta{Scope: store.ScopeTenant})
	if err := f.Delete(as(t.Context(), "acme", "bob", "s1"), shared.Ref); !errors.Is(err, artifacts.ErrDenied) {
		t.Errorf("another user's Delete = %v, want ErrDenied", err)
	}
	if err := f.Delete(as(t.Context(), "acme", "ada", "s9"), shared.Ref); err != nil {
		t.Errorf("the user's own Delete = %v", err)
	}
	if err := f.Delete(ada(t), shared.Ref); !errors.Is(err, artifacts.ErrNotFound) {
		t.Errorf("a second Delete = %v, want ErrNotFound", err)
	}
	f.empty(t)
}

func TestIdentityIsNeeded(t *testing.T) {
	f := newFixture(t, artifacts.Options{})
	for _, ctx := range []context.Context{t.Context(), identity.With(t.Context(), identity.Identity{UserID: "u", SessionID: "s"})} {
		if _, err := f.Put(ctx, strings.NewReader("x"), artifacts.Meta{}); !errors.Is(err, tools.ErrIdentityRequired) {
			t.Errorf("Put = %v, want ErrIdentityRequired", err)
		}
		if _, err := f.Fetch(ctx, artifacts.FetchArgs{Ref: "art-x"}); !errors.Is(err, tools.ErrIdentityRequired) {
			t.Errorf("Fetch = %v, want ErrIdentityRequired", err)
		}
	}
	local := newFixture(t, artifacts.Options{Local: identity.Identity{TenantID: "local", UserID: "me", SessionID: "s"}})
	if _, err := local.Stat(t.Context(), local.put(t, t.Context(), "x", artifacts.Meta{}).Ref); err != nil {
		t.Errorf("the local caller: %v", err)
	}
}

func TestRefsThatAreNone(t *testing.T) {
	f := newFixture(t, artifacts.Options{})
	for _, ref := range []string{"", "art-", "art-s", "../../etc/passwd", "art-x" + strings.Repeat("a", 26), "art-s" + strings.Repeat("a", 27),
		"art-s" + strings.Repeat("\x00", 26), "art-s" + strings.Repeat("/", 26), strings.Repeat("a", 1<<20)} {
		if _, err := f.Stat(ada(t), ref); !errors.Is(err, artifacts.ErrNotFound) {
			t.Errorf("Stat(%.40q) = %v, want ErrNotFound", ref, err)
		}
	}
}

func TestList(t *testing.T) {
	f, ctx := newFixture(t, artifacts.Options{}), ada(t)
	want := map[string]bool{}
	for i := range 12 {
		scope := []store.Scope{store.ScopeSession, store.ScopeUser, store.ScopeTenant}[i%3]
		want[f.put(t, ctx, "x", artifacts.Meta{Scope: scope}).Ref] = true
		f.put(t, as(t.Context(), "acme", "bob", "s1"), "x", artifacts.Meta{})
		f.put(t, ctx, "x", artifacts.Meta{Scope: scope, TTL: time.Second})
	}
	f.clock.Advance(time.Second)
	for _, limit := range []int{1, 3, 4, 5, 11, 12, 100} {
		got := map[string]bool{}
		for l := (artifacts.Listing{Limit: limit}); ; {
			page, more, err := f.List(ctx, l)
			if err != nil || len(page) > limit {
				t.Fatal(len(page), err)
			}
			for _, info := range page {
				if info.Ref <= l.After || got[info.Ref] {
					t.Fatalf("%s comes after %s", info.Ref, l.After)
				}
				got[info.Ref], l.After = true, info.Ref
			}
			if !more {
				break
			}
		}
		if len(got) != len(want) {
			t.Errorf("limit %d: %d artifacts, want %d", limit, len(got), len(want))
		}
	}
}

func TestTTL(t *testing.T) {
	f, ctx := newFileFixture(t, artifacts.Options{TTL: time.Hour, MaxTTL: 2 * time.Hour}), ada(t)
	short := f.put(t, ctx, "x", artifacts.Meta{})
	long := f.put(t, ctx, "x", artifacts.Meta{TTL: 100 * time.Hour})
	if want := f.clock.Now().Add(2 * time.Hour); !long.Expires.Equal(want) {
		t.Errorf("expires %v, want %v", long.Expires, want)
	}
	if n, err := f.Collect(t.Context()); err != nil || n != 0 {
		t.Errorf("Collect = %d, %v", n, err)
	}
	f.clock.Advance(time.Hour)
	if _, err := f.Stat(ctx, short.Ref); !errors.Is(err, artifacts.ErrNotFound) {
		t.Errorf("Stat of what expired = %v", err)
	}
	if n, err := f.Collect(t.Context()); err != nil || n != 1 {
		t.Errorf("Collect = %d, %v", n, err)
	}
	if names := f.names(t); len(names) != 1 {
		t.Errorf("the bucket holds %q", names)
	}
	if _, err := f.Stat(ctx, long.Ref); err != nil {
		t.Error(err)
	}
	f.clock.Advance(time.Hour)
	if n, err := f.Collect(t.Context()); err != nil || n != 1 {
		t.Errorf("Collect = %d, %v", n, err)
	}
	f.empty(t)
}

func TestQuota(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name string
		opts artifacts.Options
		fits []int
		then int
		code error
	}{
		{"tenant's bytes", artifacts.Options{Tenant: artifacts.Quota{Bytes: 10 * mib}}, []int{4 * mib, 5 * mib}, mib + 1, artifacts.ErrQuota},
		{"to the last byte", artifacts.Options{Tenant: artifacts.Quota{Bytes: 10 * mib}}, []int{4 * mib, 6 * mib}, 1, artifacts.ErrQuota},
		{"user's bytes", artifacts.Options{User: artifacts.Quota{Bytes: 3 * mib}}, []int{3 * mib}, 1, artifacts.ErrQuota},
		{"count", artifacts.Options{Tenant: artifacts.Quota{Count: 2}}, []int{0, 1}, 0, artifacts.ErrQuota},
		{"one artifact", artifacts.Options{MaxBytes: 2 * mib}, []int{2 * mib}, 2*mib + 1, artifacts.ErrTooLarge},
		{"tiny", artifacts.Options{Tenant: artifacts.Quota{Bytes: 5}}, []int{5}, 1, artifacts.ErrQuota},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, ctx := newFixture(t, c.opts), ada(t)
			var last artifacts.Info
			for _, size := range c.fits {
				last = f.put(t, ctx, strings.Repeat("x", size), artifacts.Meta{})
			}
			read := 0
			source := &counting{Reader: io.LimitReader(endless{}, int64(c.then)), read: &read}
			if _, err := f.Put(ctx, source, artifacts.Meta{}); !errors.Is(err, c.code) {
				t.Errorf("Put = %v, want %v", err, c.code)
			}
			if names := f.names(t); len(names) != len(c.fits) {
				t.Errorf("the bucket holds %d contents, want %d", len(names), len(c.fits))
			}
			if err := f.Delete(ctx, last.Ref); err != nil {
				t.Fatal(err)
			}
			f.put(t, ctx, strings.Repeat("x", c.fits[len(c.fits)-1]), artifacts.Meta{})
		})
	}
}

// A stream that never ends is cut off where the quota ends, not somewhere later.
func TestQuotaHoldsWhileStreaming(t *testing.T) {
	f := newFileFixture(t, artifacts.Options{Tenant: artifacts.Quota{Bytes: 20 << 20}, MaxBytes: -1})
	read := 0
	_, err := f.Put(ada(t), &counting{Reader: endless{}, read: &read}, artifacts.Meta{})
	if !errors.Is(err, artifacts.ErrQuota) || read > 21<<20 {
		t.Errorf("Put = %v after %d bytes", err, read)
	}
	f.empty(t)
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

type counting struct {
	io.Reader
	read *int
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	*c.read += n
	return n, err
}

func TestQuotaOfManyAtOnce(t *testing.T) {
	const each, fit = 700_000, 20
	f := newFixture(t, artifacts.Options{Tenant: artifacts.Quota{Bytes: fit * each}})
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			ctx := as(t.Context(), "acme", fmt.Sprint("u", i%3), "s")
			for range 3 {
				if _, err := f.Put(ctx, io.LimitReader(endless{}, each), artifacts.Meta{}); err != nil && !errors.Is(err, artifacts.ErrQuota) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	tenant, _, err := f.Usage(ada(t))
	if kept := int64(len(f.names(t))); err != nil || tenant.Count != kept || tenant.Bytes != kept*each || kept > fit || kept == 0 {
		t.Errorf("%d artifacts are kept, and the usage is %+v, %v", kept, tenant, err)
	}
}

var errBroken = errors.New("the source broke")

func TestUploadsThatFail(t *testing.T) {
	cancelled, cancel := context.WithCancel(ada(t))
	for _, c := range []struct {
		name string
		ctx  context.Context
		r    io.Reader
		want error
	}{
		{"at once", ada(t), iotest.ErrReader(errBroken), errBroken},
		{"in the first part", ada(t), io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(errBroken)), errBroken},
		{"broken off", ada(t), io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(io.ErrUnexpectedEOF)), io.ErrUnexpectedEOF},
		{"broken off later", ada(t), io.MultiReader(io.LimitReader(endless{}, 3<<20), iotest.ErrReader(io.ErrUnexpectedEOF)), io.ErrUnexpectedEOF},
		{"later", ada(t), io.MultiReader(io.LimitReader(endless{}, 3<<20), iotest.ErrReader(errBroken)), errBroken},
		{"cancelled", cancelled, &hooked{Reader: endless{}, after: 2 << 20, hook: cancel}, context.Canceled},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFileFixture(t, artifacts.Options{})
			if _, err := f.Put(c.ctx, c.r, artifacts.Meta{}); !errors.Is(err, c.want) {
				t.Errorf("Put = %v, want %v", err, c.want)
			}
			f.empty(t)
		})
	}
	t.Run("panic", func(t *testing.T) {
		f := newFileFixture(t, artifacts.Options{})
		func() {
			defer func() { _ = recover() }()
			_, _ = f.Put(ada(t), &hooked{Reader: endless{}, after: 2 << 20, hook: func() { panic("source") }}, artifacts.Meta{})
		}()
		f.empty(t)
	})
}

// hooked calls a function once it has given so many bytes.
type hooked struct {
	io.Reader
	after int
	hook  func()
}

func (h *hooked) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if h.after -= n; h.after <= 0 && h.hook != nil {
		hook := h.hook
		h.hook = nil
		hook()
	}
	return n, err
}

// While content arrives, nobody sees it and it counts; when its process ends, it
// is removed once nothing was heard of it for a while.
func TestAbandonedUpload(t *testing.T) {
	f, ctx := newFileFixture(t, artifacts.Options{}), ada(t)
	arrived, leave := make(chan struct{}), make(chan struct{})
	var put error
	var wg sync.WaitGroup
	wg.Go(func() {
		_, put = f.Put(ctx, &hooked{Reader: io.LimitReader(endless{}, 3<<20), after: 2 << 20, hook: func() { close(arrived); <-leave }}, artifacts.Meta{})
	})
	<-arrived
	if tenant, _, err := f.Usage(ctx); err != nil || tenant.Bytes < 2<<20 || tenant.Count != 1 {
		t.Errorf("Usage meanwhile = %+v, %v", tenant, err)
	}
	if list, _, err := f.List(ctx, artifacts.Listing{}); err != nil || len(list) != 0 {
		t.Errorf("List meanwhile = %v, %v", list, err)
	}
	if n, err := f.Collect(t.Context()); err != nil || n != 0 {
		t.Errorf("Collect meanwhile = %d, %v", n, err)
	}
	if len(f.names(t)) == 0 {
		t.Error("nothing is being written")
	}
	f.clock.Advance(time.Hour)
	if n, err := f.Collect(t.Context()); err != nil || n != 1 {
		t.Errorf("Collect = %d, %v", n, err)
	}
	f.empty(t)
	close(leave)
	wg.Wait()
	if !errors.Is(put, store.ErrConflict) {
		t.Errorf("Put of what was given up = %v", put)
	}
	f.empty(t)
}

func TestContentThatIsGone(t *testing.T) {
	f, ctx := newFixture(t, artifacts.Options{}), ada(t)
	info := f.put(t, ctx, "x", artifacts.Meta{})
	if err := f.bucket.Delete(t.Context(), f.names(t)[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Open(ctx, info.Ref, artifacts.Section{}); !errors.Is(err, artifacts.ErrNotFound) {
		t.Errorf("Open = %v", err)
	}
	if err := f.Delete(ctx, info.Ref); err != nil {
		t.Errorf("Delete = %v", err)
	}
	short := f.put(t, ctx, "0123456789", artifacts.Meta{})
	if err := f.bucket.WriteAll(t.Context(), f.names(t)[0], []byte("0123"), nil); err != nil {
		t.Fatal(err)
	}
	if got, err := f.read(ctx, short.Ref, artifacts.Section{}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("read %q, %v, want ErrUnexpectedEOF", got, err)
	}
}
