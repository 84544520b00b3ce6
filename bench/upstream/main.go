// Command upstream is an MCP server that costs as little as a net/http program
// can: it has the tool echo, and others as many as are asked for, and answers
// from prepared bytes. The report puts gateways in front of it, so that they are
// the limit, and takes it for the bare program that the start of a gateway is
// compared with.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

const (
	initialized = `,"capabilities":{"tools":{}},"serverInfo":{"name":"canned","version":"1"}}`
	unknown     = `{"code":-32601,"message":"method not found"}`
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "host:port to listen on")
	count := flag.Int("tools", 1, "how many tools there are")
	flag.Parse()
	ln, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening on http://%s\n", ln.Addr())
	log.Fatal(http.Serve(ln, &server{list: listResult(*count)}))
}

// server answers from prepared bytes.
type server struct{ list []byte }

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body := make([]byte, max(r.ContentLength, 0))
	if _, err := io.ReadFull(r.Body, body); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	m := scan(body)
	if m.id == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if m.method == "initialize" {
		w.Header()["Mcp-Session-Id"] = []string{"canned"}
	}
	answer := m.answer(make([]byte, 0, len(body)+128))
	if m.method == "tools/list" {
		write(w, answer, s.list, []byte("}"))
		return
	}
	write(w, answer)
}

// message is what the server needs of a JSON-RPC message.
type message struct {
	method     string
	id, params []byte
}

func scan(body []byte) (m message) {
	it := rawjson.Object(body)
	for it.Next() {
		switch {
		case it.KeyIs("method"):
			m.method, _ = rawjson.Unquote(it.Value())
		case it.KeyIs("id"):
			m.id = it.Value()
		case it.KeyIs("params"):
			m.params = it.Value()
		}
	}
	return m
}

// answer appends the answer to m, that to tools/list up to the list itself.
func (m *message) answer(out []byte) []byte {
	out = append(append(out, `{"jsonrpc":"2.0","id":`...), m.id...)
	switch m.method {
	case "initialize":
		// It speaks every revision that has this handshake.
		revision, _ := rawjson.Get(m.params, "protocolVersion")
		out = append(append(append(out, `,"result":{"protocolVersion":`...), revision...), initialized...)
	case "tools/list":
		return append(out, `,"result":`...)
	case "ping":
		out = append(out, `,"result":{}`...)
	case "tools/call":
		text, _ := rawjson.Get(m.params, "arguments", "text")
		out = append(out, `,"result":{"content":[{"type":"text","text":`...)
		out = append(append(out, text...), `}]}`...)
	default:
		out = append(out, `,"error":`+unknown...)
	}
	return append(out, '}')
}

func write(w http.ResponseWriter, parts ...[]byte) {
	length := 0
	for _, part := range parts {
		length += len(part)
	}
	h := w.Header()
	h["Content-Type"] = []string{"application/json"}
	h["Content-Length"] = []string{strconv.Itoa(length)}
	for _, part := range parts {
		_, _ = w.Write(part) // a client that is gone needs no answer
	}
}
