package artifacts_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/artifacts"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/internal/peertest"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/httptool"
)

const (
	// callerVariable tells a process that the test starts where to call, and
	// folderVariable where to keep the answers.
	callerVariable = "TOOLCRIB_ARTIFACTS_CALLER"
	folderVariable = "TOOLCRIB_ARTIFACTS_FOLDER"
	calls          = 64
	hugeBytes      = 500 << 20
	largeBytes     = 4 << 20
	maxProcess     = 200 << 20
)

const row = `{"id":123456,"name":"a row of the answer","tags":["one","two","three"]},`

// writeRows writes a JSON answer of at least so many bytes.
func writeRows(w io.Writer, size int) {
	rows := bytes.Repeat([]byte(row), 1000)
	_, _ = io.WriteString(w, `{"status":"ok","rows":[`)
	for n := 0; n < size; n += len(rows) {
		if _, err := w.Write(rows); err != nil {
			return
		}
	}
	_, _ = io.WriteString(w, `{}]}`)
}

// A result of 500 MB, with 63 others of 4 MB at the same time, never makes the
// process large: answers go from the connection to the store as they come.
func TestLargeResultsKeepTheProcessSmall(t *testing.T) {
	switch {
	case raced, testing.Short():
		t.Skip("the race detector multiplies the size of a process, and a short run leaves 750 MB alone")
	case runtime.GOOS != "linux":
		t.Skip("only Linux tells how large a process was")
	}
	var all sync.WaitGroup
	all.Add(calls)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		all.Done()
		all.Wait() // all calls are under way
		w.Header().Set("Content-Type", "application/json")
		size := largeBytes
		if r.URL.Query().Get("n") == "0" {
			size = hugeBytes
		}
		writeRows(w, size)
	}))
	defer srv.Close()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), callerVariable+"="+srv.URL, folderVariable+"="+peertest.Roomy(t))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the calling process: %v: %s", err, out)
	}
	peak, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the process had %d MB at most", peak>>20)
	if peak > maxProcess {
		t.Errorf("the process had %d MB at most, and may have %d", peak>>20, maxProcess>>20)
	}
}

// runCalls is the process that is measured. It makes the calls, and prints the
// most memory that it had, in bytes.
func runCalls(url string) int {
	if err := makeCalls(url, os.Getenv(folderVariable)); err != nil {
		explain(err)
		return 1
	}
	peak, err := peakMemory()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(peak)
	return 0
}

// explain prints an error and what it is made of, as that of a call does not tell
// its cause.
func explain(err error) {
	fmt.Fprintln(os.Stderr, err)
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		if cause := e.Unwrap(); cause != nil {
			explain(cause)
		}
	case interface{ Unwrap() []error }:
		for _, cause := range e.Unwrap() {
			explain(cause)
		}
	}
}

func makeCalls(url, dir string) (err error) {
	ctx := identity.With(context.Background(), identity.Identity{TenantID: "t", UserID: "u", SessionID: "s"})
	store, shut, err := openFiles(ctx, dir, time.Now)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, shut()) }()
	cat, err := rowsCatalog(ctx, url)
	if err != nil {
		return err
	}
	return callAtOnce(ctx, cat, store)
}

// rowsCatalog has one tool, rows, which calls the server.
func rowsCatalog(ctx context.Context, url string) (tools.LiveCatalog, error) {
	doc := `{"openapi":"3.1.0","info":{"title":"rows","version":"1"},"paths":{"/rows":{"get":{"operationId":"rows",
		"parameters":[{"name":"n","in":"query","schema":{"type":"integer"}}],
		"responses":{"200":{"description":"rows","content":{"application/json":{"schema":{"type":"object","required":["rows"]}}}}}}}}}`
	source, err := httptool.NewOpenAPI(httptool.OpenAPIConfig{Name: "rows", Content: []byte(doc), ServerURL: url, Network: httptool.Network{AllowPrivate: true}})
	if err != nil {
		return nil, err
	}
	if err := source.Connect(ctx); err != nil {
		return nil, err
	}
	list, err := source.Discover(ctx)
	if err != nil {
		return nil, err
	}
	cat := tools.NewCatalog().(tools.LiveCatalog)
	return cat, errors.Join(refused(cat.SwapSource(source.SourceID(), list))...)
}

func refused(r tools.Changes) []error {
	var faults []error
	for _, one := range r.Refused {
		faults = append(faults, one.Err)
	}
	return faults
}

func callAtOnce(ctx context.Context, cat tools.LiveCatalog, store *artifacts.Store) error {
	var wg sync.WaitGroup
	faults := make([]error, calls)
	for n := range calls {
		wg.Go(func() { faults[n] = callOnce(ctx, cat, store, n) })
	}
	wg.Wait()
	return cmp.Or(faults...)
}

func callOnce(ctx context.Context, cat tools.LiveCatalog, store *artifacts.Store, n int) error {
	bounder := store.Bounder(nil)
	name := tools.VisibleNames(cat, tools.CatalogFilter{})[0]
	res, err := tools.Invoke(tools.WithEntrance(ctx, tools.Entrance{Sink: bounder}), cat, name, json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)))
	if err != nil {
		return err
	}
	if res, err = bounder.Bound(ctx, &tools.Tool{Name: name}, res); err != nil {
		return err
	}
	least := int64(largeBytes)
	if n == 0 {
		least = hugeBytes
	}
	if len(res.Artifacts) != 1 || res.Artifacts[0].SizeBytes < least || len(res.Text()) > artifacts.DefaultThreshold || !strings.HasPrefix(res.Text(), `{"status":"ok","rows":[{"id":123456,`) {
		return fmt.Errorf("call %d: %+v %.200q", n, res.Artifacts, res.Text())
	}
	return nil
}

// peakMemory returns the most memory that this process had, where the system
// tells.
func peakMemory() (int, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.Atoi(strings.Fields(rest)[0])
			return kb << 10, err
		}
	}
	return 0, errors.New("the system does not tell how large a process was")
}
