package mcpserver_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/toolcrib/toolcrib/mcpserver"
)

// Each transcript is a conversation over a pipe, byte for byte. The client's
// part has one message on each line; after a request the answer is awaited,
// unless the line begins with "async ". Other lines say what to wait for:
// "wait started" and "wait ended" for the tool talk.hang, "wait message" for one
// message of the server. "answer JSON" answers the server's last request.
// Lines that begin with # are comments, and an indented line goes on with the
// one before it. The file "options" may set the page size.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			client, server := part(archive, "client"), part(archive, "server")
			if client == nil || server == nil {
				t.Fatal("a transcript has the parts client and server")
			}
			got := converse(t, archive, string(client.Data))
			if *update {
				server.Data = got
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(server.Data), string(got)); diff != "" {
				t.Errorf("the server said something else (-want +got):\n%s", diff)
			}
		})
	}
}

func part(a *txtar.Archive, name string) *txtar.File {
	i := slices.IndexFunc(a.Files, func(f txtar.File) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return &a.Files[i]
}

// converse plays the client's part and returns what the server said.
func converse(t *testing.T, archive *txtar.Archive, script string) []byte {
	opts := &mcpserver.Options{Name: "crib", Version: "1"}
	if f := part(archive, "options"); f != nil {
		if err := json.Unmarshal(f.Data, opts); err != nil {
			t.Fatal(err)
		}
	}
	c := newCrib(t)
	p := openPipe(t, c.serve(t, opts))
	for _, line := range scriptLines(script) {
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "wait":
			c.wait(t, p, rest)
		case "answer":
			p.write(t, `{"jsonrpc":"2.0","id":`+string(p.lastRequest)+`,`+rest+`}`)
			p.readAnswer(t)
		case "async":
			p.write(t, rest)
		default:
			p.write(t, line)
			if isRequest(t, line) {
				p.readAnswer(t)
			}
		}
	}
	return p.end(t)
}

func scriptLines(script string) []string {
	var lines []string
	for line := range strings.Lines(script) {
		line = strings.TrimRight(line, "\n")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, " "):
			lines[len(lines)-1] += strings.TrimSpace(line)
		default:
			lines = append(lines, line)
		}
	}
	return lines
}

func isRequest(t *testing.T, line string) bool {
	var m struct {
		ID     json.RawMessage
		Method string
	}
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		return true // it is answered with an error
	}
	return m.ID != nil && m.Method != ""
}

func (c *crib) wait(t *testing.T, p *pipe, what string) {
	switch what {
	case "started":
		receive(t, c.started)
	case "ended":
		receive(t, c.ended)
	case "message":
		p.read(t)
	default:
		t.Fatalf("wait %s?", what)
	}
}

func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(10 * time.Second):
		t.Fatal("waited for 10 s")
		panic("unreachable")
	}
}

// pipe is a client at the other end of ServeStdio.
type pipe struct {
	in          *io.PipeWriter
	lines       chan []byte
	done        chan error
	said        bytes.Buffer
	lastRequest json.RawMessage
}

func openPipe(t *testing.T, s *mcpserver.Server) *pipe {
	return openPipeAs(t.Context(), t, s)
}

func openPipeAs(ctx context.Context, t *testing.T, s *mcpserver.Server) *pipe {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	p := &pipe{in: inW, lines: make(chan []byte, 1024), done: make(chan error, 1)}
	go func() {
		err := s.ServeStdio(ctx, inR, outW)
		outW.Close()
		p.done <- err
	}()
	go func() {
		defer close(p.lines)
		r := bufio.NewReaderSize(outR, 1<<20)
		for {
			line, err := r.ReadBytes('\n')
			if err != nil {
				return
			}
			p.lines <- line
		}
	}()
	t.Cleanup(func() { inW.Close() })
	return p
}

func (p *pipe) write(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

// read returns the server's next message.
func (p *pipe) read(t *testing.T) (id, method string) {
	t.Helper()
	line := receive(t, p.lines)
	p.said.Write(line)
	var m struct {
		ID     json.RawMessage
		Method string
	}
	if err := json.Unmarshal(line, &m); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	if m.ID != nil && m.Method != "" {
		p.lastRequest = m.ID
	}
	return string(m.ID), m.Method
}

// readAnswer reads up to an answer, or a question.
func (p *pipe) readAnswer(t *testing.T) {
	t.Helper()
	for {
		id, method := p.read(t)
		if id != "" || method == "" {
			return
		}
	}
}

// end closes the pipe and returns all that the server said.
func (p *pipe) end(t *testing.T) []byte {
	t.Helper()
	p.in.Close()
	if err := receive(t, p.done); err != nil {
		t.Error(err)
	}
	for line := range p.lines {
		p.said.Write(line)
	}
	return p.said.Bytes()
}
