package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	revision    = "2025-11-25"
	callTimeout = 30 * time.Second
)

// A session calls the tool echo on one MCP session. It is used by one
// goroutine at a time.
type session interface {
	call() error
	close()
}

// wire is one HTTP connection whose requests are put together by hand, so that
// the load generator takes little of the machine that it measures.
type wire struct {
	conn net.Conn
	in   *bufio.Reader
	host string
	body bytes.Buffer
}

func dial(target string) (*wire, *url.URL, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, nil, err
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		return nil, nil, err
	}
	return &wire{conn: conn, in: bufio.NewReader(conn), host: u.Host}, u, nil
}

// head returns the head of a POST up to the value of Content-Length.
func (w *wire) head(path string, headers ...string) string {
	return "POST " + path + " HTTP/1.1\r\nHost: " + w.host + "\r\nContent-Type: application/json\r\n" +
		"Accept: application/json, text/event-stream\r\nMcp-Protocol-Version: " + revision + "\r\n" +
		strings.Join(headers, "") + "Content-Length: "
}

func (w *wire) send(head string, body []byte) error {
	if err := w.conn.SetDeadline(time.Now().Add(callTimeout)); err != nil {
		return err
	}
	msg := make([]byte, 0, len(head)+len(body)+16)
	msg = strconv.AppendInt(append(msg, head...), int64(len(body)), 10)
	msg = append(append(msg, "\r\n\r\n"...), body...)
	_, err := w.conn.Write(msg)
	return err
}

// post sends a message and returns the body of the answer, which is valid
// until the next one.
func (w *wire) post(head string, body []byte) (http.Header, []byte, error) {
	if err := w.send(head, body); err != nil {
		return nil, nil, err
	}
	resp, err := http.ReadResponse(w.in, nil)
	if err != nil {
		return nil, nil, err
	}
	w.body.Reset()
	if _, err := io.Copy(&w.body, resp.Body); err != nil {
		return nil, nil, err
	}
	if resp.StatusCode >= 300 {
		return nil, nil, fmt.Errorf("HTTP %s: %s", resp.Status, w.body.Bytes())
	}
	return resp.Header, w.body.Bytes(), nil
}

// streamable is a session of the streamable HTTP transport.
type streamable struct {
	*wire
	head   string
	params []byte
	last   int
}

// openStreamable shakes hands, and finds the tool by its name.
func openStreamable(target string) (session, error) {
	w, u, err := dial(target)
	if err != nil {
		return nil, err
	}
	s := &streamable{wire: w, head: w.head(u.Path)}
	if err := s.handshake(u.Path); err != nil {
		w.conn.Close()
		return nil, err
	}
	return s, nil
}

func (s *streamable) handshake(path string) error {
	header, _, err := s.post(s.head, initializeMessage)
	if err != nil {
		return err
	}
	if id := header.Get("Mcp-Session-Id"); id != "" {
		s.head = s.wire.head(path, "Mcp-Session-Id: "+id+"\r\n")
	}
	if _, _, err := s.post(s.head, initializedMessage); err != nil {
		return err
	}
	_, list, err := s.post(s.head, listMessage)
	if err != nil {
		return err
	}
	s.params, err = callParams(list)
	return err
}

func (s *streamable) call() error {
	s.last++
	_, answer, err := s.post(s.head, callMessage(s.last, s.params))
	if err != nil {
		return err
	}
	return checkEcho(answer)
}

func (s *streamable) close() { s.conn.Close() }

var (
	initializeMessage = []byte(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"` + revision +
		`","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`)
	initializedMessage = []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	listMessage        = []byte(`{"jsonrpc":"2.0","id":"l","method":"tools/list"}`)
	// payload is the text that the tool gives back, 1 KiB.
	payload = strings.Repeat("0123456789abcdef", 64)
)

// echoName finds the tool whose name holds "echo", as gateways rename tools each
// in its own way. A list of many tools is not decoded for it, which would take
// longer than to make it.
var echoName = regexp.MustCompile(`"name":"([^"\\]*echo[^"\\]*)"`)

// callParams returns the parameters of a call of the tool echo.
func callParams(list []byte) ([]byte, error) {
	name := echoName.FindSubmatch(list)
	if name == nil {
		return nil, fmt.Errorf("no tool echo in %.300s", list)
	}
	return json.Marshal(map[string]any{"name": string(name[1]), "arguments": map[string]string{"text": payload}})
}

func callMessage(id int, params []byte) []byte {
	msg := strconv.AppendInt([]byte(`{"jsonrpc":"2.0","id":`), int64(id), 10)
	msg = append(append(msg, `,"method":"tools/call","params":`...), params...)
	return append(msg, '}')
}

func checkEcho(answer []byte) error {
	if !bytes.Contains(answer, []byte(payload)) || bytes.Contains(answer, []byte(`"isError":true`)) {
		return fmt.Errorf("unexpected answer: %.300s", answer)
	}
	return nil
}

// twoWay is a session of the transport before streamable HTTP: messages are
// posted, and answers come on one stream of events.
type twoWay struct {
	*wire
	stream *wire
	events *bufio.Reader
	head   string
	params []byte
	last   int
}

func openTwoWay(target string) (session, error) {
	stream, u, err := dial(target)
	if err != nil {
		return nil, err
	}
	s := &twoWay{stream: stream}
	if err = s.connect(target, u.Path); err == nil {
		err = s.handshake()
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// connect opens the stream, whose first event says where to post.
func (s *twoWay) connect(target, path string) (err error) {
	if s.wire, _, err = dial(target); err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.stream.conn, "GET %s HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\n\r\n", path, s.host)
	if err != nil {
		return err
	}
	resp, err := http.ReadResponse(s.stream.in, nil)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return errors.New("HTTP " + resp.Status)
	}
	s.events = bufio.NewReader(resp.Body)
	endpoint, err := s.event()
	s.head = s.wire.head(string(bytes.TrimSpace(endpoint)))
	return err
}

func (s *twoWay) handshake() error {
	if _, err := s.ask(initializeMessage); err != nil {
		return err
	}
	if _, _, err := s.post(s.head, initializedMessage); err != nil {
		return err
	}
	list, err := s.ask(listMessage)
	if err != nil {
		return err
	}
	s.params, err = callParams(list)
	return err
}

// event returns the data of the next event.
func (s *twoWay) event() ([]byte, error) {
	if err := s.stream.conn.SetDeadline(time.Now().Add(callTimeout)); err != nil {
		return nil, err
	}
	for {
		line, err := s.events.ReadBytes('\n')
		if err != nil {
			return nil, err
		}
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			return bytes.TrimSpace(data), nil
		}
	}
}

// ask posts a request and returns its answer; notifications before it are
// passed over.
func (s *twoWay) ask(msg []byte) ([]byte, error) {
	if _, _, err := s.post(s.head, msg); err != nil {
		return nil, err
	}
	for {
		data, err := s.event()
		if err != nil || bytes.Contains(data, []byte(`"result"`)) || bytes.Contains(data, []byte(`"error"`)) {
			return data, err
		}
	}
}

func (s *twoWay) call() error {
	s.last++
	answer, err := s.ask(callMessage(s.last, s.params))
	if err != nil {
		return err
	}
	return checkEcho(answer)
}

func (s *twoWay) close() {
	s.stream.conn.Close()
	if s.wire != nil {
		s.conn.Close()
	}
}
