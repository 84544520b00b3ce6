package artifacts

import (
	"crypto/rand"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/store"
	"github.com/toolcrib/toolcrib/tools"
)

// Sentinels, for callers that branch. Compare with errors.Is.
var (
	// ErrNotFound: there is no such artifact for this caller. One of another
	// caller, and one that has expired, give the same error.
	ErrNotFound = errors.New("artifacts: not found")
	// ErrQuota: the tenant or the user keeps too much.
	ErrQuota = errors.New("artifacts: quota exceeded")
	// ErrTooLarge: the content is larger than a single artifact may be.
	ErrTooLarge = errors.New("artifacts: too large")
	// ErrNoRoom: the disk on which artifacts or their records are kept is full.
	ErrNoRoom = errors.New("artifacts: no room")
	// ErrDenied: the artifact is shared, and only who stored it may remove it.
	ErrDenied = errors.New("artifacts: not yours to remove")
	// ErrRange: the section begins behind the end of the content.
	ErrRange = errors.New("artifacts: range not satisfiable")
)

// Info describes an artifact.
type Info struct {
	// Ref is what the artifact is asked for by. It cannot be guessed.
	Ref string `json:"ref"`
	// MIME is the media type, as given or told from the content.
	MIME string `json:"mime"`
	// Name is a file name, or empty.
	Name string `json:"name,omitempty"`
	// SizeBytes and SHA256, in hex, are those of the content.
	SizeBytes int64  `json:"size_bytes"`
	SHA256    string `json:"sha256"`
	// Tool and CallID say whose result it was; empty for an upload.
	Tool   string `json:"tool,omitempty"`
	CallID string `json:"call_id,omitempty"`
	// Scope says who may read it: "session", "user" or "tenant".
	Scope string `json:"scope"`
	// User is who stored it.
	User    string    `json:"user,omitempty"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"`
}

// Artifact returns the reference that results carry.
func (i Info) Artifact() tools.ArtifactRef {
	return tools.ArtifactRef{Ref: i.Ref, MIME: i.MIME, SizeBytes: i.SizeBytes}
}

// Meta says what is stored.
type Meta struct {
	// MIME is the media type. Empty, or not a media type, means that the
	// content tells.
	MIME string
	// Name is a file name, of 255 bytes at most. Control characters are left out.
	Name string
	// Tool and CallID say whose result it is; empty for an upload.
	Tool, CallID string
	// Scope says who may read it. Zero means the session, or the narrowest
	// that the caller's identity names.
	Scope store.Scope
	// TTL is how long it is kept; zero means Options.TTL, and a longer time
	// than Options.MaxTTL means that one.
	TTL time.Duration
}

// RefPrefix begins every ref. The letter behind it is that of the scope, so that
// a ref says under which owner it is looked for.
const RefPrefix = "art-"

const (
	refRandom  = 26 // characters of crypto/rand.Text: 130 bits
	maxName    = 255
	maxMIME    = 255
	sniffBytes = 512
)

func newRef(s store.Scope) string {
	return RefPrefix + s.String()[:1] + strings.ToLower(rand.Text())
}

// scopeOf returns the scope that a ref names, or zero when it is no ref.
func scopeOf(ref string) store.Scope {
	if len(ref) != len(RefPrefix)+1+refRandom || !strings.HasPrefix(ref, RefPrefix) {
		return 0
	}
	for _, s := range scopes {
		if s.String()[0] == ref[len(RefPrefix)] {
			return s
		}
	}
	return 0
}

// scopes are those that artifacts have, in the order of their refs.
var scopes = [...]store.Scope{store.ScopeSession, store.ScopeTenant, store.ScopeUser}

// owner returns who owns what id stores in a scope, and reports whether id has
// the parts that this needs.
func owner(id identity.Identity, s store.Scope) (store.Owner, bool) {
	var o store.Owner
	switch s {
	case store.ScopeSession:
		o = store.Session(id)
	case store.ScopeUser:
		o = store.User(id)
	case store.ScopeTenant:
		o = store.Tenant(id)
	}
	return o, o.Check() == nil
}

// narrowest returns the narrowest scope that id can own in.
func narrowest(id identity.Identity) store.Scope {
	switch {
	case id.UserID == "":
		return store.ScopeTenant
	case id.SessionID == "":
		return store.ScopeUser
	}
	return store.ScopeSession
}

// mediaType returns a media type that is well formed, or what the beginning of
// the content looks like.
func mediaType(given string, head []byte) string {
	if given != "" && len(given) <= maxMIME {
		if kind, params, err := mime.ParseMediaType(given); err == nil && strings.Contains(kind, "/") {
			if full := mime.FormatMediaType(kind, params); full != "" {
				return full
			}
		}
	}
	if looksLikeJSON(head) {
		return "application/json"
	}
	return http.DetectContentType(head)
}

func looksLikeJSON(head []byte) bool {
	text := strings.TrimLeft(string(head[:min(len(head), sniffBytes)]), " \t\r\n")
	switch {
	case strings.HasPrefix(text, "{"):
		rest := strings.TrimLeft(text[1:], " \t\r\n")
		return strings.HasPrefix(rest, `"`) || strings.HasPrefix(rest, "}")
	case strings.HasPrefix(text, "["):
		rest := strings.TrimLeft(text[1:], " \t\r\n")
		return rest == "" || strings.ContainsRune(`{["0123456789-tfn]`, rune(rest[0]))
	}
	return false
}

// fileName returns what is kept of a file name, which is shown in tables and on
// terminals.
func fileName(name string) string {
	name = strings.Map(printable, strings.ToValidUTF8(name, "\uFFFD"))
	for len(name) > maxName {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	return name
}

func printable(r rune) rune {
	if unicode.IsControl(r) {
		return -1
	}
	return r
}

// refusal is an error of this package as calls of tools know it.
func refusal(code error, format string, args ...any) error {
	return &tools.Error{Code: code, Class: tools.ErrClassPermanent, Delivery: tools.Answered, Message: fmt.Sprintf(format, args...)}
}

func notFound() error {
	return refusal(ErrNotFound, "there is no such artifact, or it has expired")
}
