package tools

import (
	"context"
	"fmt"
	"slices"
)

// Flag is a fact that is known to be so, known not to be so, or not known.
type Flag int8

// The Flag values.
const (
	Unset Flag = iota
	No
	Yes
)

// FlagOf returns Yes or No.
func FlagOf(b bool) Flag {
	if b {
		return Yes
	}
	return No
}

// String returns "unset", "no" or "yes".
func (f Flag) String() string {
	switch f {
	case Yes:
		return "yes"
	case No:
		return "no"
	}
	return "unset"
}

// MarshalText returns the same words as String.
func (f Flag) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText accepts the words of String, true, false and the empty text.
func (f *Flag) UnmarshalText(b []byte) error {
	switch string(b) {
	case "yes", "true":
		*f = Yes
	case "no", "false":
		*f = No
	case "unset", "":
		*f = Unset
	default:
		return fmt.Errorf("tools: %q is not a flag: expected yes, no or unset", b)
	}
	return nil
}

// Safety holds what is known about the effects of a call. An unset flag means
// unclassified, and is never taken for the safe answer.
type Safety struct {
	// ReadOnly: a call changes nothing.
	ReadOnly Flag
	// Destructive: a call may overwrite or delete.
	Destructive Flag
	// Idempotent: repeating a call with the same arguments has no further
	// effect.
	Idempotent Flag
	// OpenWorld: a call reaches things outside the tool's own domain, such as
	// the network.
	OpenWorld Flag
	// Filesystem: a call reads or writes files.
	Filesystem Flag
	// Process: a call starts processes or runs a shell.
	Process Flag
	// Spend: a call may cost money.
	Spend Flag
	// NeedsConfirmation: a person must agree to each call.
	NeedsConfirmation Flag
	// WorkspaceRoot is the only directory that a call may touch, or empty.
	WorkspaceRoot string
	// Redaction names the redaction policy for results, or is empty.
	Redaction string
}

// reconcile fills in what Safety and SideEffects leave open from one another.
// Where both speak, the flags are the truth.
func (t *Tool) reconcile() {
	s := &t.Safety
	if t.SideEffects.harmless() && s.ReadOnly == Unset && s.Destructive != Yes {
		s.ReadOnly = Yes
	}
	if s.ReadOnly == Yes && s.Destructive == Unset {
		s.Destructive = No
	}
	switch t.SideEffects {
	case SideEffectPure:
		setUnset(&s.Idempotent, Yes)
		setUnset(&s.OpenWorld, No)
	case SideEffectWrite, SideEffectExternal, SideEffectStateful:
		setUnset(&s.ReadOnly, No)
	}
	switch {
	case s.ReadOnly == Yes && !t.SideEffects.harmless():
		t.SideEffects = SideEffectRead
	case s.ReadOnly != Yes && t.SideEffects.harmless():
		t.SideEffects = SideEffectWrite
	case s.ReadOnly == No && t.SideEffects == "":
		t.SideEffects = SideEffectWrite
	}
}

func setUnset(f *Flag, v Flag) {
	if *f == Unset {
		*f = v
	}
}

// Injected is one argument that no model sees and that the door fills in for
// each attempt, whatever a model sent.
type Injected struct {
	// Arg is the name of the argument at the top level of the arguments.
	Arg string
	// From names what fills it: one of the Inject constants, or
	// "secret:NAME" for a secret that Stages.Secrets resolves. It is ignored
	// when Value is set.
	From string
	// Value computes the argument; what it returns is encoded as JSON.
	Value func(ctx context.Context) (any, error)
}

// What Injected.From may name, beside "secret:NAME".
const (
	InjectTenant         = "tenant"
	InjectUser           = "user"
	InjectSession        = "session"
	InjectRun            = "run"
	InjectCall           = "call"
	InjectIdempotencyKey = "idempotency_key"
	injectSecretPrefix   = "secret:"
)

func (i Injected) check() error {
	if i.Arg == "" {
		return fmt.Errorf("injected argument without a name")
	}
	if i.Value != nil || slices.Contains(injectable, i.From) {
		return nil
	}
	if len(i.From) > len(injectSecretPrefix) && i.From[:len(injectSecretPrefix)] == injectSecretPrefix {
		return nil
	}
	return fmt.Errorf("injected argument %q: unknown source %q: expected one of %v or %sNAME",
		i.Arg, i.From, injectable, injectSecretPrefix)
}

var injectable = []string{InjectTenant, InjectUser, InjectSession, InjectRun, InjectCall, InjectIdempotencyKey}
