package httptool_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"gocloud.dev/blob/memblob"

	"github.com/toolcrib/toolcrib/artifacts"
	"github.com/toolcrib/toolcrib/store/sqlstore"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/httptool"
)

func newArtifacts(t *testing.T, opts *artifacts.Options) *artifacts.Store {
	t.Helper()
	records, err := sqlstore.OpenMemory(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	bucket := memblob.OpenBucket(nil)
	t.Cleanup(func() { _ = errors.Join(bucket.Close(), records.Close()) })
	return artifacts.New(bucket, records, opts)
}

// largeAnswer calls a tool whose answer is h's, as a caller that keeps large
// answers in sink.
func largeAnswer(t *testing.T, sink tools.Sink, network httptool.Network, h http.HandlerFunc) (tools.ToolResult, error) {
	t.Helper()
	srv, _ := serve(t, h)
	network.AllowPrivate = true
	src := openAPI(t, httptool.OpenAPIConfig{ServerURL: srv.URL, Network: network, Content: document("3.1.0",
		`"paths":{"/x":{"post":{"operationId":"x","responses":{"200":{"description":"d","content":{"application/json":{"schema":{"type":"object"}}}}}}}}`)})
	cat := attach(t, src)
	return tools.Invoke(tools.WithEntrance(caller(), tools.Entrance{Sink: sink}), cat, tools.VisibleNames(cat, tools.FilterFrom(caller()))[0], json.RawMessage(`{}`))
}

func typed(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, body)
	}
}

func TestLargeAnswersGoToTheCallersStore(t *testing.T) {
	long := strings.Repeat("0123456789", 30_000)
	store := newArtifacts(t, nil)
	for _, c := range []struct {
		name       string
		answer     http.HandlerFunc
		mime, want string
	}{
		{"of known length", typed("application/json", `{"a":"`+long+`"}`), "application/json", `{"a":"` + long + `"}`},
		{"flushed", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/pdf")
			w.Header().Set("Content-Disposition", `attachment; filename="../a/report.pdf"`)
			for range 3 {
				_, _ = io.WriteString(w, long)
				w.(http.Flusher).Flush()
			}
		}, "application/pdf", long + long + long},
		{"with a byte order mark", typed("text/csv; charset=utf-8", "\xEF\xBB\xBF"+long), "text/csv", long},
		{"in another charset", typed("text/plain; charset=iso-8859-1", "\xe9"+long), "text/plain", "é" + long},
		{"without a type", typed("", long), "text/plain; charset=utf-8", long},
	} {
		res, err := largeAnswer(t, store, httptool.Network{}, c.answer)
		if err != nil || len(res.Artifacts) != 1 || res.Content != nil || res.Value != nil || res.Structured != nil {
			t.Errorf("%s: %+v, %v", c.name, res, err)
			continue
		}
		info, err := store.Stat(caller(), res.Artifacts[0].Ref)
		if err != nil || info.MIME != c.mime || info.Tool != "api_x" || info.CallID != res.CallID || info.CallID == "" {
			t.Errorf("%s: %+v, %v", c.name, info, err)
		}
		if wantName := map[bool]string{true: "report.pdf"}[c.name == "flushed"]; info.Name != wantName {
			t.Errorf("%s: named %q", c.name, info.Name)
		}
		r, err := store.Open(caller(), info.Ref, artifacts.Section{})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || string(got) != c.want {
			t.Errorf("%s: %d bytes, %v, want %d", c.name, len(got), err, len(c.want))
		}
		_ = r.Close()
	}
}

func TestAnswersThatStayInMemory(t *testing.T) {
	long := `{"a":"` + strings.Repeat("0123456789", 30_000) + `"}`
	store := newArtifacts(t, nil)
	for name, c := range map[string]struct {
		sink    tools.Sink
		network httptool.Network
		body    string
	}{
		"small":                  {store, httptool.Network{}, `{"a":1}`},
		"just not large":         {store, httptool.Network{OffloadBytes: int64(len(long))}, long},
		"never":                  {store, httptool.Network{OffloadBytes: -1}, long},
		"for who takes it whole": {nil, httptool.Network{}, long},
	} {
		res, err := largeAnswer(t, c.sink, c.network, typed("application/json", c.body))
		if err != nil || string(res.Structured) != c.body || len(res.Artifacts) != 0 {
			t.Errorf("%s: %+v, %v", name, res.Artifacts, err)
		}
	}
}

func TestLargeAnswersThatFail(t *testing.T) {
	long := strings.Repeat("0123456789", 60_000)
	store := newArtifacts(t, &artifacts.Options{MaxBytes: 400_000})
	_, err := largeAnswer(t, store, httptool.Network{}, typed("text/plain", long))
	var e *tools.Error
	if !errors.As(err, &e) || !errors.Is(err, artifacts.ErrTooLarge) || e.Class != tools.ErrClassPermanent || e.Attempts != 1 || e.OutcomeUnknown {
		t.Errorf("larger than allowed: %+v", err)
	}
	mustContain(t, err.Error(), "POST /x", "could not be kept", "400000 bytes")

	_, err = largeAnswer(t, store, httptool.Network{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(long)))
		_, _ = io.WriteString(w, long[:300_000])
	})
	if !errors.As(err, &e) || e.Class != tools.ErrClassTransient || !e.OutcomeUnknown {
		t.Errorf("broken off: %+v", err)
	}
	mustContain(t, err.Error(), "broke off after 300000 bytes")
	if list, _, err := store.List(caller(), artifacts.Listing{}); err != nil || len(list) != 0 {
		t.Errorf("something was kept: %+v, %v", list, err)
	}
}
