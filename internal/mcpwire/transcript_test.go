package mcpwire_test

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
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
)

var update = flag.Bool("update", false, "rewrite the server's part of the transcripts")

// TestStdioTranscripts plays the client's part of each transcript on a pipe,
// one line after the other, and compares what the server writes.
func TestStdioTranscripts(t *testing.T) {
	forTranscripts(t, "stdio", func(t *testing.T, a *txtar.Archive) {
		client, server := section(a, "client"), section(a, "server")
		if client == nil || server == nil {
			t.Fatal("a transcript has a client and a server section")
		}
		server.Data = playStdio(t, client.Data)
	})
}

func playStdio(t *testing.T, client []byte) []byte {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- mcpwire.NewServer(echo{}, &mcpwire.ServerOptions{MaxMessageBytes: 2000}).ServeStdio(t.Context(), inR, outW)
		outW.Close()
	}()
	var got bytes.Buffer
	out := bufio.NewReader(outR)
	for line := range bytes.Lines(client) {
		line = bytes.ReplaceAll(line, []byte("$LONG"), bytes.Repeat([]byte("x"), 3000))
		if _, err := inW.Write(line); err != nil {
			t.Fatal(err)
		}
		f, err := mcpwire.ScanFrame(line)
		batch := bytes.HasPrefix(line, []byte("[")) && bytes.Contains(line, []byte(`"id"`))
		if err == nil && f.Kind != mcpwire.KindRequest && !batch {
			continue
		}
		readUntilAnswer(t, out, &got)
	}
	inW.Close()
	if err := <-served; err != nil {
		t.Errorf("ServeStdio: %v", err)
	}
	rest, _ := io.ReadAll(out)
	got.Write(rest)
	return got.Bytes()
}

// readUntilAnswer copies lines up to and with the first that is an answer.
func readUntilAnswer(t *testing.T, out *bufio.Reader, got *bytes.Buffer) {
	for {
		line, err := out.ReadBytes('\n')
		if err != nil {
			t.Fatalf("the server wrote no answer: %v", err)
		}
		got.Write(line)
		if f, err := mcpwire.ScanFrame(line); err != nil || f.Method == "" {
			return
		}
	}
}

// TestHTTPTranscripts sends the requests of each transcript, in order, and
// compares the responses. $SESSION stands for the session's id.
func TestHTTPTranscripts(t *testing.T) {
	forTranscripts(t, "http", func(t *testing.T, a *txtar.Archive) {
		_, url, rt := serveWire(t, echo{}, &mcpwire.ServerOptions{MaxMessageBytes: 2000, Authenticate: bearer})
		session := ""
		for i := 0; i+1 < len(a.Files); i += 2 {
			a.Files[i+1].Data = playHTTP(t, url, rt, a.Files[i].Data, &session)
		}
	})
}

// bearer makes the token the principal, and refuses the token "bad".
func bearer(r *http.Request) (ctx context.Context, principal string, err error) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if token == "bad" {
		return nil, "", &mcpwire.Refusal{
			Status: http.StatusUnauthorized, Message: "who are you?",
			Header: http.Header{"WWW-Authenticate": {`Bearer resource_metadata="https://x/y"`}},
		}
	}
	return r.Context(), token, nil
}

func playHTTP(t *testing.T, url string, rt http.RoundTripper, raw []byte, session *string) []byte {
	raw = bytes.ReplaceAll(raw, []byte("$SESSION"), []byte(*session))
	raw = bytes.ReplaceAll(raw, []byte("$LONG"), bytes.Repeat([]byte("x"), 3000))
	head, body, _ := strings.Cut(string(raw), "\n\n")
	lines := strings.Split(strings.TrimSpace(head), "\n")
	req, err := http.NewRequestWithContext(t.Context(), lines[0], url, strings.NewReader(strings.TrimSpace(body)))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lines[1:] {
		k, v, _ := strings.Cut(l, ": ")
		req.Header[http.CanonicalHeaderKey(k)] = []string{v}
		if k == "Host" {
			req.Host = v
		}
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		*session = id
	}
	return formatResponse(t, resp, *session)
}

func formatResponse(t *testing.T, resp *http.Response, session string) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%d\n", resp.StatusCode)
	for _, k := range []string{"Allow", "Content-Type", "Mcp-Session-Id", "Www-Authenticate"} {
		if v := resp.Header.Get(k); v != "" {
			fmt.Fprintf(&out, "%s: %s\n", k, v)
		}
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if len(body) > 0 {
		fmt.Fprintf(&out, "\n%s\n", bytes.TrimSpace(body))
	}
	if session == "" {
		return out.Bytes()
	}
	return bytes.ReplaceAll(out.Bytes(), []byte(session), []byte("$SESSION"))
}

func section(a *txtar.Archive, name string) *txtar.File {
	for i := range a.Files {
		if a.Files[i].Name == name {
			return &a.Files[i]
		}
	}
	return nil
}

// forTranscripts runs play on each transcript of a directory, and compares what
// it made of the archive with the file.
func forTranscripts(t *testing.T, dir string, play func(*testing.T, *txtar.Archive)) {
	files, err := filepath.Glob(filepath.Join("testdata", dir, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts in testdata/%s: %v", dir, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			a := txtar.Parse(want)
			play(t, a)
			got := txtar.Format(a)
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if !bytes.Equal(got, want) {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}
