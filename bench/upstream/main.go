// Command upstream is an MCP server that costs as little as a net/http program
// can: it has one tool, echo, and answers from prepared bytes. The report puts
// gateways in front of it, so that they are the limit, and takes it for the
// bare program that the start of a gateway is compared with.
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
	toolList    = `{"tools":[{"name":"echo","description":"Returns the text that it is given.","inputSchema":` +
		`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}}]}`
	unknown = `{"code":-32601,"message":"method not found"}`
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "host:port to listen on")
	flag.Parse()
	ln, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening on http://%s\n", ln.Addr())
	log.Fatal(http.Serve(ln, http.HandlerFunc(serve)))
}

func serve(w http.ResponseWriter, r *http.Request) {
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
	write(w, m.answer(make([]byte, 0, len(body)+128)))
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

func (m *message) answer(out []byte) []byte {
	out = append(append(out, `{"jsonrpc":"2.0","id":`...), m.id...)
	switch m.method {
	case "initialize":
		// It speaks every revision that has this handshake.
		revision, _ := rawjson.Get(m.params, "protocolVersion")
		out = append(append(append(out, `,"result":{"protocolVersion":`...), revision...), initialized...)
	case "tools/list":
		out = append(out, `,"result":`+toolList...)
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

func write(w http.ResponseWriter, body []byte) {
	h := w.Header()
	h["Content-Type"] = []string{"application/json"}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	_, _ = w.Write(body) // a client that is gone needs no answer
}
