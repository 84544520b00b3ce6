package api_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/artifacts"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/store/sqlstore"
	"github.com/toolcrib/toolcrib/tools"
)

// keeper serves a catalog that keeps artifacts by the session that a request
// names.
func keeper(t *testing.T) *httptest.Server {
	t.Helper()
	server, _ := keeperAndBucket(t)
	return server
}

func keeperAndBucket(t *testing.T) (*httptest.Server, *blob.Bucket) {
	t.Helper()
	records, err := sqlstore.OpenMemory(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	bucket := memblob.OpenBucket(nil)
	kept := artifacts.New(bucket, records, &artifacts.Options{MaxBytes: 1000})
	server := httptest.NewServer(api.New(tools.NewCatalog().(tools.LiveCatalog), &api.Options{Artifacts: kept,
		Authenticate: func(r *http.Request) (context.Context, error) {
			return identity.With(r.Context(), identity.Identity{TenantID: "t", UserID: "u", SessionID: "s" + r.Header.Get(api.SessionHeader)}), nil
		}}))
	t.Cleanup(func() {
		server.Close()
		if err := errors.Join(bucket.Close(), records.Close()); err != nil {
			t.Error(err)
		}
	})
	return server, bucket
}

func client(t *testing.T, server *httptest.Server, session string) *api.Client {
	t.Helper()
	c, err := api.NewClient(server.URL, &api.ClientOptions{HTTPClient: server.Client(), Session: session})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func codeOf(err error) api.Code {
	if e, ok := errors.AsType[*api.Error](err); ok {
		return e.Code
	}
	return ""
}

func TestArtifactsOfASession(t *testing.T) {
	ctx, server := t.Context(), keeper(t)
	mine, other := client(t, server, "mine"), client(t, server, "other")
	info, err := mine.PutArtifact(ctx, strings.NewReader("one\ntwo\nthree\n"), "n.txt", "text/plain")
	if err != nil || info.Name != "n.txt" || info.SizeBytes != 14 || info.MIME != "text/plain" {
		t.Fatalf("%+v, %v", info, err)
	}
	list, err := mine.ListArtifacts(ctx, api.ArtifactsRequest{Limit: 10})
	if err != nil || len(list.Artifacts) != 1 || list.More {
		t.Errorf("%+v, %v", list, err)
	}
	content, _, err := mine.OpenArtifact(ctx, info.Ref)
	if err != nil {
		t.Fatal(err)
	}
	if all, err := io.ReadAll(content); err != nil || string(all) != "one\ntwo\nthree\n" {
		t.Errorf("%q, %v", all, err)
	}
	content.Close()
	part, err := mine.FetchArtifact(ctx, artifacts.FetchArgs{Ref: info.Ref, FromLine: 2, ToLine: 2})
	if err != nil || part.Content != "two" {
		t.Errorf("%+v, %v", part, err)
	}
	for name, ask := range map[string]func(*api.Client, string) error{
		"get":    func(c *api.Client, ref string) error { _, err := c.GetArtifact(ctx, ref); return err },
		"open":   func(c *api.Client, ref string) error { _, _, err := c.OpenArtifact(ctx, ref); return err },
		"delete": func(c *api.Client, ref string) error { _, err := c.DeleteArtifact(ctx, ref); return err },
	} {
		theirs, none := ask(other, info.Ref), ask(other, "art-s"+strings.Repeat("a", 26))
		if codeOf(theirs) != api.CodeArtifactNotFound || theirs.Error() != none.Error() {
			t.Errorf("%s: %v, of one that is not there %v", name, theirs, none)
		}
	}
	if list, err := other.ListArtifacts(ctx, api.ArtifactsRequest{}); err != nil || len(list.Artifacts) != 0 {
		t.Errorf("another session lists %+v, %v", list, err)
	}
	if _, err := mine.DeleteArtifact(ctx, info.Ref); err != nil {
		t.Error(err)
	}
	if _, err := mine.GetArtifact(ctx, info.Ref); codeOf(err) != api.CodeArtifactNotFound {
		t.Errorf("removed, and still there: %v", err)
	}
}

func TestContentIsSentInParts(t *testing.T) {
	server := keeper(t)
	info, err := client(t, server, "").PutArtifact(t.Context(), strings.NewReader("0123456789"), "", "text/html")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		method, ranges string
		status         int
		body           string
	}{
		{http.MethodGet, "", http.StatusOK, "0123456789"},
		{http.MethodGet, "bytes=2-4", http.StatusPartialContent, "234"},
		{http.MethodGet, "bytes=-3", http.StatusPartialContent, "789"},
		{http.MethodGet, "bytes=20-", http.StatusRequestedRangeNotSatisfiable, ""},
		{http.MethodHead, "", http.StatusOK, ""},
		{http.MethodPost, "", http.StatusMethodNotAllowed, ""},
	} {
		req, err := http.NewRequestWithContext(t.Context(), tc.method, server.URL+"/v1/artifacts/content/"+info.Ref, nil)
		if err != nil {
			t.Fatal(err)
		}
		if tc.ranges != "" {
			req.Header.Set("Range", tc.ranges)
		}
		resp, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != tc.status || tc.status < 300 && string(body) != tc.body {
			t.Errorf("%s %s: %d %q", tc.method, tc.ranges, resp.StatusCode, body)
		}
		if h := resp.Header; tc.status == http.StatusOK && (h.Get("Content-Security-Policy") != "sandbox" || h.Get("Content-Disposition") != "attachment") {
			t.Errorf("a page could run: %v", h)
		}
	}
}

func TestArtifactsRefuse(t *testing.T) {
	ctx, server := t.Context(), keeper(t)
	c := client(t, server, "")
	if _, err := c.PutArtifact(ctx, bytes.NewReader(make([]byte, 2000)), "", ""); codeOf(err) != api.CodeTooLarge {
		t.Errorf("too large: %v", err)
	}
	if _, err := c.GetArtifact(ctx, ""); codeOf(err) != api.CodeInvalidRequest {
		t.Errorf("no ref: %v", err)
	}
	if _, err := c.FetchArtifact(ctx, artifacts.FetchArgs{Ref: "art-x", Offset: -1}); codeOf(err) != api.CodeInvalidRequest {
		t.Errorf("a negative offset: %v", err)
	}
	bare := httptest.NewServer(api.New(tools.NewCatalog().(tools.LiveCatalog), nil))
	defer bare.Close()
	if _, err := client(t, bare, "").ListArtifacts(ctx, api.ArtifactsRequest{}); codeOf(err) != api.CodeUnknownMethod {
		t.Errorf("a server without artifacts: %v", err)
	}
}

func TestContentThatIsGoneIsNotFound(t *testing.T) {
	server, bucket := keeperAndBucket(t)
	info, err := client(t, server, "").PutArtifact(t.Context(), strings.NewReader("0123456789"), "", "")
	if err != nil {
		t.Fatal(err)
	}
	for list := bucket.List(nil); ; {
		o, err := list.Next(t.Context())
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := bucket.Delete(t.Context(), o.Key); err != nil {
			t.Fatal(err)
		}
	}
	resp, err := server.Client().Get(server.URL + "/v1/artifacts/content/" + info.Ref)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusNotFound || !strings.Contains(string(body), string(api.CodeArtifactNotFound)) {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

func TestABrokenUploadIsAWrongRequest(t *testing.T) {
	server := keeper(t)
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /v1/artifacts/content HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nnone\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(body), string(api.CodeInvalidRequest)) {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

func TestAClientTellsContentThatCannotBeRead(t *testing.T) {
	broken := iotest.ErrReader(errors.New("is a directory"))
	_, err := client(t, keeper(t), "").PutArtifact(t.Context(), broken, "", "")
	if codeOf(err) != api.CodeInvalidRequest || !strings.Contains(err.Error(), "cannot be read: is a directory") {
		t.Errorf("%v", err)
	}
}
