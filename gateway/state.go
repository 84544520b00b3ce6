package gateway

import (
	"fmt"

	"github.com/toolcrib/toolcrib/tools"
)

// The states of a source.
const (
	SourceConnecting = "connecting" // the first attempt has not ended
	SourceReady      = "ready"      // its tools are in the catalog
	SourceDown       = "down"       // the last attempt failed; another follows
	SourceReplacing  = "replacing"  // the tools of its former settings serve until an attempt succeeds
	SourceClosed     = "closed"
)

// SourceState says how a source of tools is doing.
type SourceState struct {
	// Name is the source's name in the configuration.
	Name string `json:"name"`
	// Kind is "mcp", "openapi", "utcp", "http_manifest" or "a2a".
	Kind string `json:"kind"`
	// State is one of the Source constants.
	State string `json:"state"`
	// Error is why the last attempt failed, or empty.
	Error string `json:"error,omitempty"`
	// ErrorClass is the kind of that failure, or empty.
	ErrorClass tools.ErrorClass `json:"error_class,omitempty"`
	// Failures counts the attempts in a row that failed.
	Failures int `json:"-"`
	// AuthorizationURL is where the local caller can authorize, in a browser,
	// what the source needs; empty when it needs nothing.
	AuthorizationURL string `json:"authorization_url,omitempty"`
	// Tools counts the source's tools in the catalog.
	Tools int `json:"tools"`
	// Refused lists tools that could not be registered, each with the reason.
	Refused []Refused `json:"refused,omitempty"`
	// Unmatched lists keys of the source's settings that name tools which it
	// does not have, such as `include "creat_*"`.
	Unmatched []string `json:"unmatched,omitempty"`
}

// Refused is a tool that could not be registered, and why.
type Refused struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// fault is what may be said of a failure to callers who do not operate the
// gateway: the words of a source can name its address, its files and its tools.
func (s *SourceState) fault() string {
	if s.Error == "" {
		return ""
	}
	return fmt.Sprintf("source %q: %s failure", s.Name, s.ErrorClass)
}
