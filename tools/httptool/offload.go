package httptool

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"golang.org/x/text/encoding/htmlindex"

	"github.com/toolcrib/toolcrib/tools"
)

// offloads returns the size above which an answer is kept aside for the caller,
// or reports false when it never is.
func (c *caller) offloads(ctx context.Context) (above int64, ok bool) {
	return c.offload, c.offload >= 0 && tools.CallFrom(ctx).Offloads()
}

// receive reads an answer into memory, or, when it is large and the caller wants
// that, streams it to where the caller keeps such things. Exactly one of body
// and ref is set, unless the answer is empty.
func (c *caller) receive(ctx context.Context, out *outgoing, resp *http.Response) (body []byte, ref *tools.ArtifactRef, err error) {
	above, ok := c.offloads(ctx)
	if !ok || out.method == http.MethodHead {
		body, err = c.read(ctx, out, resp)
		return body, nil, err
	}
	head := make([]byte, 0, bytes.MinRead)
	if resp.ContentLength <= above {
		head, err = io.ReadAll(io.LimitReader(resp.Body, above+1))
		if err != nil {
			return nil, nil, brokeOff(ctx, out, resp, int64(len(head)))
		}
		if int64(len(head)) <= above {
			return head, nil, nil
		}
	}
	kept, err := c.keepAside(ctx, out, resp, head)
	if err != nil {
		return nil, nil, err
	}
	return nil, &kept, nil
}

// keepAside streams an answer whose beginning was read already.
func (c *caller) keepAside(ctx context.Context, out *outgoing, resp *http.Response, head []byte) (tools.ArtifactRef, error) {
	kind, params, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	source := &watched{in: io.MultiReader(bytes.NewReader(head), resp.Body)}
	var content io.Reader = source
	if isText(kind) {
		content = textReader(source, params["charset"])
	}
	ref, err := tools.CallFrom(ctx).Offload(ctx, tools.Offload{MIME: kind, Name: answerName(resp)}, content)
	switch {
	case err == nil:
		return ref, nil
	case source.err != nil, ctx.Err() != nil:
		return ref, brokeOff(ctx, out, resp, source.n)
	}
	e := &tools.Error{Class: tools.ErrClassPermanent, Delivery: tools.Answered, Err: err,
		Message: fmt.Sprintf("%s: HTTP %d: the call was made, but its large answer could not be kept", out.label, resp.StatusCode)}
	var told *tools.Error
	if errors.As(err, &told) && told.Code != nil {
		e.Message += ": " + told.SafeMessage()
	}
	return ref, e
}

// watched remembers whether reading failed, and how much was read.
type watched struct {
	in  io.Reader
	n   int64
	err error
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.in.Read(p)
	w.n += int64(n)
	if err != nil && err != io.EOF {
		w.err = err
	}
	return n, err
}

// textReader gives text as UTF-8 without a byte order mark.
func textReader(r io.Reader, charset string) io.Reader {
	if charset != "" && !strings.EqualFold(charset, "utf-8") {
		if enc, err := htmlindex.Get(charset); err == nil {
			return enc.NewDecoder().Reader(r)
		}
	}
	buffered := bufio.NewReader(r)
	if mark, err := buffered.Peek(len(byteOrderMark)); err == nil && string(mark) == byteOrderMark {
		_, _ = buffered.Discard(len(mark)) // it was seen
	}
	return buffered
}

// answerName returns the file name that the server gives, or nothing.
func answerName(resp *http.Response) string {
	_, params, err := mime.ParseMediaType(resp.Header.Get("Content-Disposition"))
	if err != nil {
		return ""
	}
	name := params["filename"]
	return name[strings.LastIndexAny(name, `/\`)+1:]
}
