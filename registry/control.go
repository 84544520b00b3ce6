package registry

import (
	"context"
	"time"
)

// The names of messages between workers and registries, beside those that
// answer a call.
const (
	// MessageAnnounce asks a registry to admit a worker; the payload is an
	// Announcement, and the answer's payload an Admission.
	MessageAnnounce = "announce"
	// MessageLeave says that a worker ends; the payload is an Announcement
	// without a contract, signed as one that is Leaving.
	MessageLeave = "leave"
	// MessageClaim asks for the right to run a call; the payload is a Claim,
	// and the name of the answer a Verdict.
	MessageClaim = "claim"
	// MessageClaims and MessageResults are several claims, or results of recorded
	// calls, at once; the payload is a JSON array of them, as EncodeTogether makes
	// it. The answer is MessageVerdicts, whose payload is an array of strings: for
	// each in turn the name that would answer it alone, or MessageAlone.
	MessageClaims   = "claim_batch"
	MessageResults  = "result_batch"
	MessageVerdicts = "verdicts"
	// MessageAlone is a verdict: nothing was done, and the claim or result is to
	// be handed in as a question of its own.
	MessageAlone = "alone"
	// MessagePing asks a worker how it is; the payload is a ToolCallMessage of
	// TypePing, and the answer's payload a Status.
	MessagePing = "ping"
	// MessageRetire asks a worker to end because its contract was replaced; the
	// payload is a Retire. It answers when its last call has.
	MessageRetire = "retire"
	// MessageCancel tells the workers of a toolset that a call's caller went
	// away; the payload is a Cancel.
	MessageCancel = "cancel"
	// MessageProbe asks the workers of a toolset which of some calls they have;
	// the payload is a Probe. Each answers with a note MessageHeld, whose payload
	// is a Probe that names those alone.
	MessageProbe = "probe"
	MessageHeld  = "held"
	// MessageHello tells all workers that a registry started.
	MessageHello = "hello"
	// MessagePong acknowledges a ping: as the answer to one with a Status as its
	// payload, and on PongSubject with the ping's id.
	MessagePong = "pong"
	// MessageOK answers what was done.
	MessageOK = "ok"
	// MessageRetry answers what could not be done now.
	MessageRetry = "retry"
)

// Announcement is what a worker says of itself.
type Announcement struct {
	Toolset string `json:"toolset"`
	// Instance is the worker's own id, new with every start.
	Instance string `json:"instance"`
	// Version is that of the worker's program, or empty.
	Version string `json:"version,omitzero"`
	// Host names the machine, or is empty.
	Host string `json:"host,omitzero"`
	// Concurrency is how many calls it runs at once, and Queue how many more it
	// holds.
	Concurrency int `json:"concurrency,omitzero"`
	Queue       int `json:"queue,omitzero"`
	// Contract is what it serves. Nil joins a toolset whose contract is known.
	Contract *Contract `json:"contract,omitzero"`
	// Incomplete says that some of what the worker is to serve is not there now.
	// Its contract then takes the place of none whose workers are up.
	Incomplete bool `json:"incomplete,omitzero"`
	// Proof shows that the worker holds the toolset's key; see Sign.
	Proof *Proof `json:"proof,omitzero"`
	// Leaving says that this is the worker's goodbye. The name of the message
	// says so, and the proof is of that.
	Leaving bool `json:"-"`
}

// The statuses of an Admission.
const (
	// StatusServe: take calls.
	StatusServe = "serve"
	// StatusStandby: take no calls yet, and ask again after RetryAfterMS.
	StatusStandby = "standby"
	// StatusRefused: the announcement is wrong, and asking again does not help.
	StatusRefused = "refused"
)

// Admission is what a registry says to an Announcement.
type Admission struct {
	Status string `json:"status"`
	// Message explains the status to a person.
	Message string `json:"message,omitzero"`
	// Revision counts the contracts that the toolset has had.
	Revision int `json:"revision,omitzero"`
	// Fingerprint is that of the contract that is served.
	Fingerprint string `json:"fingerprint,omitzero"`
	// RetryAfterMS is how long to wait before asking again, in milliseconds.
	RetryAfterMS int64 `json:"retry_after_ms,omitzero"`
	// Changing says that the contract is being changed, and maybe to the worker's: one
	// that serves asks again, too.
	Changing bool `json:"changing,omitzero"`
	// SilenceMS is after how long without a ping a worker should announce
	// itself again, in milliseconds.
	SilenceMS int64 `json:"silence_ms,omitzero"`
	// Token is what a MessageRetire for this worker must hold.
	Token string `json:"token,omitzero"`
}

// Retire asks a worker to end.
type Retire struct {
	// Token is that of the worker's Admission.
	Token string `json:"token"`
}

// Claim asks for the right to run a call.
type Claim struct {
	ToolUseID string `json:"tool_use_id"`
	Toolset   string `json:"toolset"`
	Instance  string `json:"instance"`
	Token     string `json:"token"`
	TenantID  string `json:"tenant_id,omitzero"`
	// Try is greater for each time that the worker took the call from its stream, and
	// the same for the Release of that time, so that claims which arrive late count for
	// nothing. 0 is a worker that does not say.
	Try int `json:"try,omitzero"`
	// Release gives the call back: the worker has not run it, and will not by this try.
	Release bool `json:"release,omitzero"`
}

// Verdict answers a Claim.
type Verdict string

// The Verdict values.
const (
	// VerdictRun: the call is this worker's; run it.
	VerdictRun Verdict = "run"
	// VerdictHeld: another worker has it. It may still be known to be dead, so
	// the event goes back.
	VerdictHeld Verdict = "held"
	// VerdictOver: the call has its result, or was never accepted. The event is
	// done with.
	VerdictOver Verdict = "over"
	// VerdictRetry: the registry cannot write its record now.
	VerdictRetry Verdict = "retry"
)

// Cancel names a call whose caller went away.
type Cancel struct {
	ToolUseID string `json:"tool_use_id"`
	// Token is that of the Route of the message which the caller gave up. Empty
	// means the calls of the id that have none.
	Token string `json:"token,omitzero"`
}

// Probe names calls. In a question, Inbox is whose notes take the answer, and in the
// answer Tokens are those of the calls' Routes, in the same order.
type Probe struct {
	ToolUseIDs []string `json:"tool_use_ids"`
	Inbox      string   `json:"inbox,omitzero"`
	Tokens     []string `json:"tokens,omitzero"`
}

// Status is how a worker is.
type Status struct {
	Toolset  string `json:"toolset"`
	Instance string `json:"instance"`
	Version  string `json:"version,omitzero"`
	PingID   string `json:"ping_id,omitzero"`
	// Running and Queued count the calls that it has.
	Running int `json:"running"`
	Queued  int `json:"queued"`
	// Concurrency and Queue are the most that it takes of both.
	Concurrency int `json:"concurrency"`
	Queue       int `json:"queue"`
	// Served and Failed count the calls that it answered, and those among them
	// that it answered with an error.
	Served uint64 `json:"served"`
	Failed uint64 `json:"failed"`
	// Draining says that it takes no more calls.
	Draining bool `json:"draining,omitzero"`
	// Now is the time by its clock, or zero.
	Now time.Time `json:"now,omitzero"`
	// Hindered says to a person what keeps it from serving calls although it runs, such
	// as a right that it lacks at the backend. A registry cuts it after MaxHinderedBytes.
	Hindered string `json:"hindered,omitzero"`
}

// MaxHinderedBytes bounds what a worker says of what keeps it from serving calls.
const MaxHinderedBytes = 1024

// Grant is what a toolset may be.
type Grant struct {
	// Tenants, when not empty, are the only tenants that see its tools.
	Tenants []string `json:"tenants,omitzero"`
	// Scopes are demanded of callers, beside those that a tool demands itself.
	Scopes []string `json:"scopes,omitzero"`
	// Prefix is put before the names of its tools.
	Prefix string `json:"prefix,omitzero"`
}

// Admit decides whether a worker may serve a toolset. Its error is told to the
// worker. It is called by many goroutines at once, each time that a worker
// announces itself, and for its goodbye, which counts for nothing when it is
// refused.
type Admit func(ctx context.Context, a *Announcement) (Grant, error)

type waitKey struct{}

// Wait returns a context whose calls wait for a worker when none is up, until
// their deadline, instead of failing at once.
func Wait(ctx context.Context) context.Context { return context.WithValue(ctx, waitKey{}, true) }

// MetaWait is the member of a call's _meta that does the same as Wait, when it
// is true.
const MetaWait = "toolcrib/wait_for_worker"

func waits(ctx context.Context) bool {
	w, _ := ctx.Value(waitKey{}).(bool)
	return w
}

// The defaults of Options.
const (
	DefaultPingInterval   = 10 * time.Second
	DefaultMissedPings    = 3
	DefaultStaleAfter     = 40 * time.Second
	DefaultDrainTimeout   = 30 * time.Second
	DefaultRetention      = 24 * time.Hour
	DefaultMaxCallTime    = time.Hour
	DefaultMaxOutstanding = 10_000
)

// The bounds of Options.PingInterval.
const (
	MinPingInterval = 10 * time.Millisecond
	MaxPingInterval = 24 * time.Hour
)
