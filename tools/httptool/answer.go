package httptool

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/encoding/htmlindex"

	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// byteOrderMark may stand before UTF-8 text, and is not part of it.
const byteOrderMark = "\xEF\xBB\xBF"

// maxExcerpt bounds how much of an error's body is shown, in bytes.
const maxExcerpt = 1500

// answer turns a response into a result or an error.
func (c *caller) answer(ctx context.Context, out *outgoing, resp *http.Response) (tools.ToolResult, error) {
	if resp.StatusCode >= 300 && resp.StatusCode != http.StatusNotModified {
		return tools.ToolResult{}, status(out, resp)
	}
	body, kept, err := c.receive(ctx, out, resp)
	if err != nil {
		return tools.ToolResult{}, err
	}
	var res tools.ToolResult
	if kept != nil {
		res.Artifacts = []tools.ArtifactRef{*kept}
	} else {
		body = bytes.TrimPrefix(body, []byte(byteOrderMark))
		kind, params, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
		res = result(out, resp, kind, params["charset"], body)
	}
	res.Provider = map[string]any{"http_status": resp.StatusCode, "content_type": resp.Header.Get("Content-Type")}
	for _, name := range []string{"Link", "Location", "ETag", "Last-Modified"} {
		if v := resp.Header.Get(name); v != "" {
			res.Provider[strings.ToLower(name)] = out.clean(v)
		}
	}
	return res, nil
}

// read returns the whole body, or an error when it is longer than the limit or
// breaks off.
func (c *caller) read(ctx context.Context, out *outgoing, resp *http.Response) ([]byte, error) {
	if resp.ContentLength > c.limit && out.method != http.MethodHead {
		return nil, c.tooLong(out)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, c.limit+1))
	switch {
	case err == nil && int64(len(body)) > c.limit:
		return nil, c.tooLong(out)
	case err == nil:
		return body, nil
	}
	return nil, brokeOff(ctx, out, resp, int64(len(body)))
}

func brokeOff(ctx context.Context, out *outgoing, resp *http.Response, after int64) error {
	e := &tools.Error{Class: tools.ErrClassTransient, Delivery: tools.DeliveryUnknown, Retryable: true,
		Message: fmt.Sprintf("%s: HTTP %d: the answer broke off after %d bytes", out.label, resp.StatusCode, after)}
	if ctx.Err() != nil {
		e.Class, e.Err, e.Retryable = "", ctx.Err(), false
	}
	return e
}

func (c *caller) tooLong(out *outgoing) error {
	return &tools.Error{Class: tools.ErrClassPermanent, Delivery: tools.Answered,
		Message: fmt.Sprintf("%s: the answer is longer than the limit of %d bytes", out.label, c.limit)}
}

// result chooses the form of a body by its media type.
func result(out *outgoing, resp *http.Response, kind, charset string, body []byte) tools.ToolResult {
	switch {
	case len(body) == 0:
		return bodiless(resp, out)
	case (isJSON(kind) || kind == "") && rawjson.Valid(body):
		raw := json.RawMessage(rawjson.Trim(body))
		return tools.ToolResult{Value: raw, Structured: raw}
	case isText(kind), kind == "" && utf8.Valid(body):
		text := decodeText(charset, body)
		return tools.ToolResult{Value: text, Content: []tools.Content{tools.TextContent(text)}}
	case strings.HasPrefix(kind, "image/"):
		return tools.ToolResult{Content: []tools.Content{tools.ImageContent(body, kind)}}
	case strings.HasPrefix(kind, "audio/"):
		return tools.ToolResult{Content: []tools.Content{tools.AudioContent(body, kind)}}
	}
	return tools.ToolResult{Content: []tools.Content{blob(resp, or(kind, "application/octet-stream"), body)}}
}

// bodiless is the value of an answer without a body: its status, where it
// points to, and for HEAD the headers, which are all there is to it.
func bodiless(resp *http.Response, out *outgoing) tools.ToolResult {
	value := map[string]any{"status": resp.StatusCode}
	if l := resp.Header.Get("Location"); l != "" {
		value["location"] = out.clean(l)
	}
	if resp.Request != nil && resp.Request.Method == http.MethodHead {
		headers := map[string]string{}
		for name, v := range resp.Header {
			if name != "Set-Cookie" {
				headers[strings.ToLower(name)] = out.clean(strings.ToValidUTF8(strings.Join(v, ", "), "\uFFFD"))
			}
		}
		value["headers"] = headers
	}
	raw, _ := json.Marshal(value) // strings and one number always encode
	return tools.ToolResult{Value: json.RawMessage(raw), Structured: raw}
}

// blob is an embedded resource that holds bytes; its URI is the request's
// without the query, which may carry a credential.
func blob(resp *http.Response, kind string, body []byte) tools.Content {
	uri := "about:blank"
	if resp.Request != nil {
		u := *resp.Request.URL
		u.RawQuery, u.Fragment, u.User = "", "", nil
		uri = u.String()
	}
	raw := append([]byte(`{"type":"resource","resource":{"uri":`), rawjson.Quote(uri)...)
	raw = append(append(raw, `,"mimeType":`...), rawjson.Quote(kind)...)
	raw = append(raw, `,"blob":"`...)
	raw = base64.StdEncoding.AppendEncode(raw, body)
	return tools.Content{Type: "resource", JSON: append(raw, `"}}`...)}
}

func isJSON(kind string) bool {
	return kind == "application/json" || kind == "text/json" || strings.HasSuffix(kind, "+json")
}

// isText reports whether a media type is text although its name may not say
// so.
func isText(kind string) bool {
	if strings.HasPrefix(kind, "text/") || isJSON(kind) || strings.HasSuffix(kind, "+xml") || strings.HasSuffix(kind, "yaml") {
		return true
	}
	switch kind {
	case "application/xml", "application/x-www-form-urlencoded", "application/javascript", "application/x-ndjson",
		"application/jsonl", "application/graphql", "application/sql", "application/toml":
		return true
	}
	return false
}

// decodeText reads text in the charset that the answer names; UTF-8 otherwise.
func decodeText(charset string, body []byte) string {
	if charset != "" && !strings.EqualFold(charset, "utf-8") {
		if enc, err := htmlindex.Get(charset); err == nil {
			if text, err := enc.NewDecoder().Bytes(body); err == nil {
				return string(text)
			}
		}
	}
	return strings.ToValidUTF8(string(body), "\uFFFD")
}

// status is the error for an answer that is no success.
func status(out *outgoing, resp *http.Response) error {
	code := resp.StatusCode
	e := &tools.Error{Class: tools.ErrClassPermanent, Delivery: tools.Answered, RetryAfter: retryAfter(resp.Header)}
	switch {
	case code == http.StatusTooManyRequests:
		e.Class, e.Delivery, e.Retryable = tools.ErrClassTransient, tools.NotDelivered, true
	case code == http.StatusRequestTimeout:
		e.Class, e.Retryable = tools.ErrClassTransient, true
	case code >= 500:
		e.Class, e.Retryable = tools.ErrClass5xx, true
	}
	e.Message = fmt.Sprintf("%s: HTTP %d", out.label, code)
	if text := http.StatusText(code); text != "" {
		e.Message += " " + text
	}
	if x := excerpt(resp, out); x != "" {
		e.Message += ": " + x
	}
	return out.sinceActed(e)
}

// excerpt returns the beginning of a textual body. Secrets are removed before
// it is cut, so that none is cut in half and passes.
func excerpt(resp *http.Response, out *outgoing) string {
	kind, params, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind != "" && !isText(kind) {
		return ""
	}
	head, err := io.ReadAll(io.LimitReader(resp.Body, 2*maxExcerpt))
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && len(head) == 0 {
		return ""
	}
	text := out.clean(strings.TrimSpace(decodeText(params["charset"], head)))
	if len(text) > maxExcerpt {
		text = strings.ToValidUTF8(text[:maxExcerpt], "") + "…"
	}
	return strings.Map(printable, text)
}

func printable(r rune) rune {
	if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
		return -1
	}
	return r
}

// maxRetryAfter bounds what a server may ask for.
const maxRetryAfter = 24 * time.Hour

// retryAfter reads the header Retry-After: seconds, or a date.
func retryAfter(h http.Header) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v == "" {
		return 0
	}
	var d time.Duration
	if n, err := strconv.ParseInt(v, 10, 64); err == nil {
		d = time.Duration(min(max(n, 0), int64(maxRetryAfter/time.Second))) * time.Second
	} else if t, err := http.ParseTime(v); err == nil {
		d = time.Until(t)
	}
	return min(max(d, 0), maxRetryAfter)
}
