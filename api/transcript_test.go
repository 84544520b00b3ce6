package api_test

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/toolcrib/toolcrib/api"
)

var update = flag.Bool("update", false, "rewrite the responses of the transcripts")

// varying is what differs from one call to the next.
var varying = regexp.MustCompile(`("call_id":)"[^"]*"|("elapsed_ms":)[0-9.]+`)

// A transcript holds requests and, after each, its response. Its comment is
// the scopes of the caller in its first line, if that begins with "scopes:".
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { replay(t, file) })
	}
}

func replay(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var scopes []string
	first, _, _ := strings.Cut(string(archive.Comment), "\n")
	if list, ok := strings.CutPrefix(first, "scopes:"); ok {
		scopes = strings.Fields(list)
	}
	server := as(t, api.Options{MaxBodyBytes: 4096, Sources: func(context.Context) []api.Source {
		return []api.Source{
			{Name: "files", Kind: "mcp", State: "ready", Tools: 2, Refused: []api.RefusedTool{{Name: "a b", Reason: "a schema that does not compile"}}},
			{Name: "mail", Kind: "openapi", State: "down", Error: "connection refused"},
		}
	}}, scopes...)
	responses := map[string][]byte{}
	for _, f := range archive.Files {
		if name, ok := strings.CutSuffix(f.Name, ".request"); ok {
			responses[name+".response"] = exchange(t, server.URL, f.Data)
		}
	}
	if *update {
		rewrite(t, file, archive, responses)
		return
	}
	for _, f := range archive.Files {
		if got, ok := responses[f.Name]; ok && !bytes.Equal(got, f.Data) {
			t.Errorf("%s:\n got %s\nwant %s", f.Name, got, f.Data)
		}
		delete(responses, f.Name)
	}
	for name := range responses {
		t.Errorf("%s is missing in %s; run with -update", name, file)
	}
}

// exchange sends a request as it stands in a transcript, and writes down the
// response.
func exchange(t *testing.T, url string, text []byte) []byte {
	t.Helper()
	head, body, _ := bytes.Cut(text, []byte("\n\n"))
	lines := bufio.NewScanner(bytes.NewReader(head))
	lines.Scan()
	method, path, _ := strings.Cut(lines.Text(), " ")
	req, err := http.NewRequest(method, url+path, bytes.NewReader(bytes.TrimSuffix(body, []byte("\n"))))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), ": ")
		req.Header.Set(key, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	fmt.Fprintln(&out, resp.StatusCode, resp.Header.Get("Content-Type"))
	for _, key := range []string{"Allow", "Retry-After"} {
		if v := resp.Header.Get(key); v != "" {
			fmt.Fprintf(&out, "%s: %s\n", key, v)
		}
	}
	out.WriteByte('\n')
	out.Write(bytes.TrimRight(varying.ReplaceAll(answer, []byte("$1$2…")), "\n"))
	out.WriteByte('\n')
	return out.Bytes()
}

func rewrite(t *testing.T, file string, archive *txtar.Archive, responses map[string][]byte) {
	t.Helper()
	var files []txtar.File
	for _, f := range archive.Files {
		name, isRequest := strings.CutSuffix(f.Name, ".request")
		if !isRequest {
			continue
		}
		files = append(files, f, txtar.File{Name: name + ".response", Data: responses[name+".response"]})
	}
	archive.Files = files
	if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
		t.Fatal(err)
	}
}
