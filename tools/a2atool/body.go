package a2atool

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"syscall"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

type dialControl = func(network, address string, c syscall.RawConn) error

const eventStream = "text/event-stream"

// adapt bounds a response and keeps its numbers exact. An agent that answers a
// request for a stream with a single JSON document, which most do with errors,
// has it read as a stream of one event.
func (n *network) adapt(req *http.Request, resp *http.Response, t *trip) (*http.Response, error) {
	resp.Body = &boundedBody{body: resp.Body, left: n.cfg.MaxResponseBytes, limit: n.cfg.MaxResponseBytes, trip: t}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	isJSON := kind == "application/json" || strings.HasSuffix(kind, "+json")
	if isJSON && resp.StatusCode != http.StatusOK {
		if err := errorAnswer(resp); err != nil {
			return nil, err
		}
	}
	if isJSON && resp.StatusCode == http.StatusOK && req.Header.Get("Accept") == eventStream {
		return singleEvent(resp)
	}
	if isJSON || kind == eventStream {
		resp.Body = readCloser{newExactReader(resp.Body), resp.Body}
	}
	return resp, nil
}

// errorAnswer makes an error readable for the library, which knows the media
// type of plain JSON alone, and a JSON-RPC error with the status 200 alone.
func errorAnswer(resp *http.Response) error {
	defer resp.Body.Close()
	doc, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	resp.Body = io.NopCloser(bytes.NewReader(doc))
	resp.Header.Set("Content-Type", "application/json")
	_, rpc := rawjson.Get(doc, "jsonrpc")
	if _, failed := rawjson.Get(doc, "error"); rpc && failed {
		resp.StatusCode = http.StatusOK
	}
	return nil
}

type readCloser struct {
	io.Reader
	io.Closer
}

// singleEvent turns a JSON document into a stream of one event.
func singleEvent(resp *http.Response) (*http.Response, error) {
	defer resp.Body.Close()
	doc, err := io.ReadAll(newExactReader(resp.Body))
	if err != nil {
		return nil, err
	}
	if line, err := rawjson.Compact(doc); err == nil {
		doc = line
	}
	resp.Header.Set("Content-Type", eventStream)
	resp.ContentLength = -1
	resp.Body = io.NopCloser(io.MultiReader(strings.NewReader("data: "), bytes.NewReader(doc), strings.NewReader("\n\n")))
	return resp, nil
}

// errTooLong says that an answer is longer than its limit.
var errTooLong = errors.New("the answer is too long")

// A boundedBody is an error when it is longer than its limit, and never cut.
type boundedBody struct {
	body        io.ReadCloser
	left, limit int64
	trip        *trip
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.body.Read(p)
	if b.left -= int64(n); b.left < 0 {
		n, err = 0, fmt.Errorf("%w: the limit is %d bytes", errTooLong, b.limit)
	}
	if err != nil && err != io.EOF {
		b.trip.broke(err)
	}
	return n, err
}

func (b *boundedBody) Close() error { return b.body.Close() }
