package registry

import (
	"fmt"
	"strings"
	"time"

	"github.com/toolcrib/toolcrib/registry/stream"
)

// MaxToolsetBytes bounds a toolset's name.
const MaxToolsetBytes = 64

// ResultTTL is how long the answer to a request that names no way back is kept
// on its own stream.
const ResultTTL = 10 * time.Minute

// RequestStream returns the name of the stream that a toolset's workers share.
func RequestStream(toolset string) string { return "toolset:" + toolset + ":requests" }

// ResultStream returns the name of the stream on which a request is answered
// that names no other.
func ResultStream(toolUseID string) string { return "result:" + toolUseID }

// DeadStream returns the name of the stream that keeps what could not be served.
func DeadStream(toolset string) string { return "toolset:" + toolset + ":dead" }

// CancelSubject returns the subject on which a toolset's workers hear of calls
// whose callers went away, and are asked which calls they have.
func CancelSubject(toolset string) string { return "toolset:" + toolset + ":cancel" }

// InstanceSubject returns the subject that one worker alone responds to.
func InstanceSubject(toolset, instance string) string {
	return "toolset:" + toolset + ":worker:" + instance
}

// GatewayInbox returns the name to which the gateways of a namespace are answered,
// and WorkerInbox that of the workers of a toolset. A client that has it as the
// Inbox of its options can be told from others by the permissions of the backend.
func GatewayInbox(namespace string) string {
	if namespace == "" {
		namespace = DefaultNamespace
	}
	return "registry:" + namespace
}

// WorkerInbox returns the name to which the workers of a toolset are answered.
func WorkerInbox(toolset string) string { return "toolset:" + toolset }

// AnnounceSubject returns the subject on which the registries of a namespace
// take announcements. Empty means DefaultNamespace.
func AnnounceSubject(namespace string) string { return shared(namespace, "announce") }

// HelloSubject returns the subject on which a registry that starts asks the
// workers to announce themselves again.
func HelloSubject(namespace string) string { return shared(namespace, "hello") }

// PongSubject returns the subject on which registries hear of pings that were
// acknowledged.
func PongSubject(namespace string) string { return shared(namespace, "pong") }

func shared(namespace, what string) string {
	if namespace == "" {
		namespace = DefaultNamespace
	}
	return "registry:" + namespace + ":" + what
}

// DefaultNamespace is the namespace of registries and workers that name none.
const DefaultNamespace = "default"

// CheckNamespace returns ErrInvalid for what cannot be a namespace.
func CheckNamespace(name string) error {
	// A process of the namespace has the longest name that is made of it.
	if err := stream.CheckName("namespace", NotesSubject(shared(name, "process:"+strings.Repeat("x", processBytes)))); err != nil {
		return fmt.Errorf("%w: the namespace %.40q is too long, or not text: %w", ErrInvalid, name, err)
	}
	return nil
}

// processBytes is the length of the id of a process.
const processBytes = 26

// CheckToolset returns ErrInvalid for what cannot be a toolset's name.
func CheckToolset(name string) error {
	if name == "" || len(name) > MaxToolsetBytes {
		return fmt.Errorf("%w: a toolset's name has 1 to %d characters, not %d", ErrInvalid, MaxToolsetBytes, len(name))
	}
	for i := range len(name) {
		if !nameByte(name[i]) {
			return fmt.Errorf("%w: the toolset's name %q has a character that is none of A-Z, a-z, 0-9, underscore, dot and dash", ErrInvalid, name)
		}
	}
	return nil
}

func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.' || c == '-'
}
