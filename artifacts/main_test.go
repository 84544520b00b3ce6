package artifacts_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/memblob"

	"github.com/toolcrib/toolcrib/artifacts"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/store"
	"github.com/toolcrib/toolcrib/store/sqlstore"
	"github.com/toolcrib/toolcrib/store/storetest"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(callerVariable); url != "" {
		os.Exit(runCalls(url))
	}
	if dir := os.Getenv(writerVariable); dir != "" {
		os.Exit(putForever(dir))
	}
	goleak.VerifyTestMain(m)
}

type fixture struct {
	*artifacts.Store
	clock   *storetest.Clock
	bucket  *blob.Bucket
	records store.Store
}

// newFixture returns a store in memory.
func newFixture(t testing.TB, opts artifacts.Options) *fixture {
	t.Helper()
	return newFixtureIn(t, memblob.OpenBucket(nil), opts)
}

// newFileFixture returns a store whose content is in files.
func newFileFixture(t testing.TB, opts artifacts.Options) *fixture {
	t.Helper()
	bucket, err := fileblob.OpenBucket(t.TempDir(), &fileblob.Options{NoTempDir: true, Metadata: fileblob.MetadataDontWrite})
	if err != nil {
		t.Fatal(err)
	}
	return newFixtureIn(t, bucket, opts)
}

func newFixtureIn(t testing.TB, bucket *blob.Bucket, opts artifacts.Options) *fixture {
	t.Helper()
	f := &fixture{clock: storetest.NewClock(), bucket: bucket}
	opts.Now = f.clock.Now
	records, err := sqlstore.OpenMemory(t.Context(), &sqlstore.Options{Now: f.clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	f.records = records
	f.Store = artifacts.New(bucket, records, &opts)
	t.Cleanup(func() {
		if err := errors.Join(bucket.Close(), records.Close()); err != nil {
			t.Error(err)
		}
	})
	return f
}

func as(ctx context.Context, tenant, user, session string) context.Context {
	return identity.With(ctx, identity.Identity{TenantID: tenant, UserID: user, SessionID: session})
}

func ada(t testing.TB) context.Context { return as(t.Context(), "acme", "ada", "s1") }

func (f *fixture) put(t testing.TB, ctx context.Context, content string, meta artifacts.Meta) artifacts.Info {
	t.Helper()
	info, err := f.Put(ctx, strings.NewReader(content), meta)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func (f *fixture) read(ctx context.Context, ref string, section artifacts.Section) (string, error) {
	r, err := f.Open(ctx, ref, section)
	if err != nil {
		return "", err
	}
	content, err := io.ReadAll(r)
	return string(content), errors.Join(err, r.Close())
}

// names are all names in the bucket.
func (f *fixture) names(t testing.TB) []string {
	t.Helper()
	var names []string
	for list := f.bucket.List(nil); ; {
		o, err := list.Next(t.Context())
		if err == io.EOF {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, o.Key)
	}
}

// empty demands that nothing at all is left.
func (f *fixture) empty(t testing.TB) {
	t.Helper()
	if names := f.names(t); len(names) > 0 {
		t.Errorf("the bucket holds %q", names)
	}
	if page, err := f.records.Sweep(t.Context(), store.Sweep{Collection: "artifacts"}); err != nil || len(page.Records) > 0 {
		t.Errorf("%d records are left, %v", len(page.Records), err)
	}
	page, err := f.records.Sweep(t.Context(), store.Sweep{Collection: "artifact-usage"})
	if err != nil {
		t.Error(err)
	}
	for _, r := range page.Records {
		if !bytes.Equal(r.Value, []byte(`{"bytes":0,"count":0}`)) {
			t.Errorf("%v keeps %s", r.Key.Owner, r.Value)
		}
	}
}
