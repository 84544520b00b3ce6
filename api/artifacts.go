package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/toolcrib/toolcrib/artifacts"
)

// Artifacts of a caller's session. A ref of another's gives the error of one that
// does not exist.

// ArtifactsRequest selects a page of the caller's artifacts.
type ArtifactsRequest struct {
	// After is the ref that the page comes after; empty begins.
	After string `json:"after,omitempty"`
	// Limit is how many to return; 0 means 100.
	Limit int `json:"limit,omitempty"`
}

// maxArtifacts bounds a page of artifacts.
const maxArtifacts = 1000

// ArtifactsResponse is a page of artifacts, sorted by ref.
type ArtifactsResponse struct {
	Artifacts []artifacts.Info `json:"artifacts"`
	// More says that the page after the last ref is not empty.
	More bool `json:"more"`
}

// Deleted says what was removed.
type Deleted struct {
	Ref string `json:"ref"`
}

type refRequest struct {
	Ref string `json:"ref"`
}

var errNoArtifacts = newError(CodeUnknownMethod, "this server keeps no artifacts")

// ListArtifacts returns a page of what the caller on ctx keeps.
func (s *Server) ListArtifacts(ctx context.Context, req ArtifactsRequest) (*ArtifactsResponse, error) {
	if s.opts.Artifacts == nil {
		return nil, errNoArtifacts
	}
	page, more, err := s.opts.Artifacts.List(ctx, artifacts.Listing(req))
	if err != nil {
		return nil, ErrorFrom(err)
	}
	return &ArtifactsResponse{present(page), more}, nil
}

// GetArtifact describes an artifact.
func (s *Server) GetArtifact(ctx context.Context, ref string) (*artifacts.Info, error) {
	if s.opts.Artifacts == nil {
		return nil, errNoArtifacts
	}
	info, err := s.opts.Artifacts.Stat(ctx, ref)
	if err != nil {
		return nil, ErrorFrom(err)
	}
	return &info, nil
}

// FetchArtifact returns a part of an artifact, as artifact_fetch does.
func (s *Server) FetchArtifact(ctx context.Context, req artifacts.FetchArgs) (*artifacts.FetchResult, error) {
	if s.opts.Artifacts == nil {
		return nil, errNoArtifacts
	}
	part, err := s.opts.Artifacts.Fetch(ctx, req)
	if err != nil {
		return nil, ErrorFrom(err)
	}
	return &part, nil
}

// DeleteArtifact removes an artifact.
func (s *Server) DeleteArtifact(ctx context.Context, ref string) (*Deleted, error) {
	if s.opts.Artifacts == nil {
		return nil, errNoArtifacts
	}
	if err := s.opts.Artifacts.Delete(ctx, ref); err != nil {
		return nil, ErrorFrom(err)
	}
	return &Deleted{ref}, nil
}

// OpenArtifact reads the content of an artifact. The reader must be closed.
func (s *Server) OpenArtifact(ctx context.Context, ref string) (io.ReadCloser, *artifacts.Info, error) {
	if s.opts.Artifacts == nil {
		return nil, nil, errNoArtifacts
	}
	r, err := s.opts.Artifacts.Open(ctx, ref, artifacts.Section{})
	if err != nil {
		return nil, nil, ErrorFrom(err)
	}
	return r, &r.Info, nil
}

// PutArtifact keeps what r gives for the caller's session.
func (s *Server) PutArtifact(ctx context.Context, r io.Reader, name, mime string) (*artifacts.Info, error) {
	if s.opts.Artifacts == nil {
		return nil, errNoArtifacts
	}
	in := &source{Reader: r}
	info, err := s.opts.Artifacts.Put(ctx, in, artifacts.Meta{Name: name, MIME: mime})
	if broken := in.broken(ctx); err != nil && broken != nil {
		return nil, broken
	}
	if err != nil {
		return nil, ErrorFrom(err)
	}
	return &info, nil
}

// source is content that is read, and remembers why that failed.
type source struct {
	io.Reader
	fault atomic.Pointer[error]
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && err != io.EOF {
		s.fault.Store(&err)
	}
	return n, err
}

// broken returns what kept the content from being read, or nil. A caller that went
// away is no fault of the content.
func (s *source) broken(ctx context.Context) error {
	fault := s.fault.Load()
	if fault == nil || ctx.Err() != nil {
		return nil
	}
	return newError(CodeInvalidRequest, "the content cannot be read: "+(*fault).Error())
}

func decodeArtifacts(raw []byte) (req ArtifactsRequest, err error) {
	err = decodeObject("", raw, []field{{"after", takeString(&req.After)}, {"limit", takeCount(&req.Limit, maxArtifacts)}})
	return req, err
}

func decodeRef(raw []byte) (ref string, err error) {
	if err = decodeObject("", raw, []field{{"ref", takeString(&ref)}}); err == nil && ref == "" {
		err = newError(CodeInvalidRequest, "ref: expected the reference of an artifact")
	}
	return ref, err
}

func decodeFetch(raw []byte) (req artifacts.FetchArgs, err error) {
	if err = decodeObject("", raw, []field{
		{"ref", takeString(&req.Ref)}, {"max_bytes", takeCount(&req.MaxBytes, artifacts.MaxFetchBytes)}, {"offset", takeSize(&req.Offset)},
		{"from_line", takeSize(&req.FromLine)}, {"to_line", takeSize(&req.ToLine)},
		{"search", takeString(&req.Search)}, {"context", takeCount(&req.Context, maxArtifacts)}, {"query", takeString(&req.Query)},
	}); err == nil && req.Ref == "" {
		err = newError(CodeInvalidRequest, "ref: expected the reference of an artifact")
	}
	return req, err
}

// contentPath is where the content of artifacts is sent and received as it is.
const contentPath = "/v1/artifacts/content"

// serveContent answers a request for content: GET and HEAD below the path send
// an artifact, a part of it where the request has a Range, and POST to the path
// keeps the body.
func (s *Server) serveContent(w http.ResponseWriter, r *http.Request) error {
	if s.opts.Artifacts == nil {
		return errNoArtifacts
	}
	ref, below := strings.CutPrefix(r.URL.Path, contentPath+"/")
	switch {
	case below && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		return s.sendContent(w, r, ref)
	case !below && r.Method == http.MethodPost:
		return s.keepContent(w, r)
	}
	allowed := http.MethodPost
	if below {
		allowed = "GET, HEAD"
	}
	w.Header().Set("Allow", allowed)
	return newError(CodeMethodNotAllowed, r.URL.Path[:min(len(r.URL.Path), 200)]+" is answered to "+allowed+", not to "+shorten(r.Method))
}

func (s *Server) sendContent(w http.ResponseWriter, r *http.Request, ref string) error {
	info, err := s.opts.Artifacts.Stat(r.Context(), ref)
	if err != nil {
		return ErrorFrom(err)
	}
	open, err := s.opts.Artifacts.Open(r.Context(), ref, artifacts.Section{})
	if err != nil {
		return ErrorFrom(err)
	}
	content := &seeker{ctx: r.Context(), store: s.opts.Artifacts, info: &info, open: open}
	defer content.Close()
	h := w.Header()
	h.Set("Content-Type", info.MIME)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "sandbox")
	h.Set("Content-Disposition", "attachment")
	h.Set("Cache-Control", "private, no-store")
	h.Set("ETag", strconv.Quote(info.SHA256))
	http.ServeContent(w, r, "", info.Created, content)
	return nil
}

func (s *Server) keepContent(w http.ResponseWriter, r *http.Request) error {
	info, err := s.PutArtifact(r.Context(), r.Body, r.URL.Query().Get("name"), r.Header.Get("Content-Type"))
	if err != nil {
		return err
	}
	return writeJSON(w, info)
}

// seeker is the content of an artifact for http.ServeContent, which seeks before
// it reads.
type seeker struct {
	ctx   context.Context
	store *artifacts.Store
	info  *artifacts.Info
	at    int64
	open  *artifacts.Reader
	next  int64 // where open goes on
}

// Seek implements io.Seeker.
func (c *seeker) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += c.at
	case io.SeekEnd:
		offset += c.info.SizeBytes
	}
	if offset < 0 {
		return 0, errors.New("api: a place before the content")
	}
	c.at = offset
	return offset, nil
}

// Read implements io.Reader.
func (c *seeker) Read(p []byte) (int, error) {
	if c.at >= c.info.SizeBytes {
		return 0, io.EOF
	}
	if c.open == nil || c.next != c.at {
		c.Close()
		r, err := c.store.Open(c.ctx, c.info.Ref, artifacts.Section{Offset: c.at})
		if err != nil {
			return 0, err
		}
		c.open, c.next = r, c.at
	}
	n, err := c.open.Read(p)
	c.at += int64(n)
	c.next = c.at
	return n, err
}

// Close ends the reading.
func (c *seeker) Close() {
	if c.open != nil {
		_ = c.open.Close() // what was read was complete, or Read has said so
		c.open = nil
	}
}

// ListArtifacts returns a page of what the caller keeps.
func (c *Client) ListArtifacts(ctx context.Context, req ArtifactsRequest) (*ArtifactsResponse, error) {
	return ask[ArtifactsResponse](ctx, c, "/v1/artifacts/list", req)
}

// GetArtifact describes an artifact.
func (c *Client) GetArtifact(ctx context.Context, ref string) (*artifacts.Info, error) {
	return ask[artifacts.Info](ctx, c, "/v1/artifacts/get", refRequest{ref})
}

// FetchArtifact returns a part of an artifact.
func (c *Client) FetchArtifact(ctx context.Context, req artifacts.FetchArgs) (*artifacts.FetchResult, error) {
	return ask[artifacts.FetchResult](ctx, c, "/v1/artifacts/fetch", req)
}

// DeleteArtifact removes an artifact.
func (c *Client) DeleteArtifact(ctx context.Context, ref string) (*Deleted, error) {
	return ask[Deleted](ctx, c, "/v1/artifacts/delete", refRequest{ref})
}

// OpenArtifact reads the content of an artifact. The reader must be closed.
func (c *Client) OpenArtifact(ctx context.Context, ref string) (io.ReadCloser, *artifacts.Info, error) {
	info, err := c.GetArtifact(ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	resp, err := c.send(ctx, http.MethodGet, contentPath+"/"+url.PathEscape(ref), nil, "")
	if err != nil {
		return nil, nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		_, err := decodeAnswer[json.RawMessage](resp)
		return nil, nil, err
	}
	return resp.Body, info, nil
}

// PutArtifact keeps what r gives.
func (c *Client) PutArtifact(ctx context.Context, r io.Reader, name, mime string) (*artifacts.Info, error) {
	path := contentPath
	if name != "" {
		path += "?" + url.Values{"name": {name}}.Encode()
	}
	in := &source{Reader: r}
	resp, err := c.send(ctx, http.MethodPost, path, in, mime)
	if broken := in.broken(ctx); err != nil && broken != nil {
		return nil, broken
	}
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return decodeAnswer[artifacts.Info](resp)
}

func (c *Client) send(ctx context.Context, method, path string, body io.Reader, mime string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	if mime != "" {
		req.Header.Set("Content-Type", mime)
	}
	c.name(req)
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(err)
	}
	return resp, nil
}
