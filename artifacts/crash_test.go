package artifacts_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"gocloud.dev/blob/fileblob"

	"github.com/toolcrib/toolcrib/artifacts"
	"github.com/toolcrib/toolcrib/store/sqlstore"
)

// writerVariable tells a process that the test starts where to store artifacts.
const writerVariable = "TOOLCRIB_ARTIFACTS_WRITER"

// openFiles opens the store in a folder, as another process may at the same time.
func openFiles(ctx context.Context, dir string, now func() time.Time) (*artifacts.Store, func() error, error) {
	records, err := sqlstore.Open(ctx, filepath.Join(dir, "records.db"), &sqlstore.Options{Now: now})
	if err != nil {
		return nil, nil, err
	}
	bucket, err := fileblob.OpenBucket(filepath.Join(dir, "content"), &fileblob.Options{CreateDir: true, NoTempDir: true, Metadata: fileblob.MetadataDontWrite})
	if err != nil {
		return nil, nil, errors.Join(err, records.Close())
	}
	shut := func() error { return errors.Join(bucket.Close(), records.Close()) }
	return artifacts.New(bucket, records, &artifacts.Options{Now: now}), shut, nil
}

// putForever stores artifacts until the process is killed, and says which it has
// stored.
func putForever(dir string) int {
	ctx := as(context.Background(), "acme", "ada", "s1")
	s, _, err := openFiles(ctx, dir, time.Now)
	for err == nil {
		var info artifacts.Info
		if info, err = s.Put(ctx, io.LimitReader(endless{}, 3<<20), artifacts.Meta{}); err == nil {
			fmt.Println(info.Ref)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// A process that is killed while it stores loses nothing that it has stored, and
// what it leaves behind goes.
func TestKilledWhileItStores(t *testing.T) {
	for _, after := range []int{1, 4, 7} {
		dir := t.TempDir()
		refs := killWriter(t, dir, after)
		later := func() time.Time { return time.Now().Add(time.Hour) }
		s, shut, err := openFiles(t.Context(), dir, later)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Collect(t.Context()); err != nil {
			t.Error(err)
		}
		checkStored(t, s, dir, refs)
		if err := shut(); err != nil {
			t.Error(err)
		}
	}
}

// killWriter kills a process that stores once it has stored so many, and returns
// what it said that it has stored.
func killWriter(t *testing.T, dir string, after int) []string {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), writerVariable+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var refs []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if refs = append(refs, lines.Text()); len(refs) == after {
			_ = cmd.Process.Kill() // what it still prints was stored too
		}
	}
	_ = cmd.Wait() // it was killed
	if len(refs) < after {
		t.Fatalf("the process ended after %d artifacts", len(refs))
	}
	return refs
}

// checkStored demands what was stored, and nothing else: not in the folder, and not
// in the usage.
func checkStored(t *testing.T, s *artifacts.Store, dir string, refs []string) {
	t.Helper()
	for _, ref := range refs {
		r, err := s.Open(ada(t), ref, artifacts.Section{})
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.New()
		if n, err := io.Copy(sum, r); err != nil || n != 3<<20 || hex.EncodeToString(sum.Sum(nil)) != r.Info.SHA256 {
			t.Errorf("%s: %d bytes, %v", ref, n, err)
		}
		_ = r.Close()
	}
	list, _, err := s.List(ada(t), artifacts.Listing{})
	if err != nil || len(list) < len(refs) || len(list) > len(refs)+1 { // it may not have come to say so of the last
		t.Errorf("%d artifacts are listed, %v; %d were stored", len(list), err, len(refs))
	}
	files := 0
	err = filepath.WalkDir(filepath.Join(dir, "content"), func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files++
		}
		return err
	})
	tenant, _, usageErr := s.Usage(ada(t))
	if want := (artifacts.Usage{Bytes: int64(len(list)) * 3 << 20, Count: int64(len(list))}); err != nil || usageErr != nil || files != len(list) || tenant != want {
		t.Errorf("%d files and %+v are left of %d artifacts, %v, %v", files, tenant, len(list), err, usageErr)
	}
}
