package mcpwire

import "slices"

// The protocol revisions that this package speaks.
const (
	Version20241105 = "2024-11-05"
	Version20250326 = "2025-03-26"
	Version20250618 = "2025-06-18"
	Version20251125 = "2025-11-25"
	Version20260728 = "2026-07-28"

	// LatestStateful is the newest revision that opens a session.
	LatestStateful = Version20251125
	// LatestStateless is the newest revision whose requests stand alone.
	LatestStateless = Version20260728
)

// Era says which of the two families of revisions a connection follows.
type Era uint8

const (
	// EraStateful is the family up to 2025-11-25: an initialize handshake
	// opens a session that later messages belong to.
	EraStateful Era = iota
	// EraStateless is the family from 2026-07-28 on: each request carries in
	// its _meta what a session would have remembered.
	EraStateless
)

// String returns "stateful" or "stateless".
func (e Era) String() string {
	if e == EraStateless {
		return "stateless"
	}
	return "stateful"
}

// Versions returns every revision that this package speaks, newest first.
func Versions() []string {
	return []string{Version20260728, Version20251125, Version20250618, Version20250326, Version20241105}
}

// EraOf returns the era of a revision. Revisions are dates, so an unknown one
// belongs to the era that its text sorts into.
func EraOf(version string) Era {
	if version >= Version20260728 {
		return EraStateless
	}
	return EraStateful
}

func knownVersion(version string) bool { return slices.Contains(Versions(), version) }

// negotiateStateful picks the revision that an initialize request is answered
// with: the asked one where it is spoken, else the newest that has sessions.
func negotiateStateful(asked string) string {
	if knownVersion(asked) && EraOf(asked) == EraStateful {
		return asked
	}
	return LatestStateful
}

// The members of a request's _meta that carry, in the stateless era, what the
// handshake carries in the stateful one.
const (
	MetaProtocolVersion    = "io.modelcontextprotocol/protocolVersion"
	MetaClientInfo         = "io.modelcontextprotocol/clientInfo"
	MetaClientCapabilities = "io.modelcontextprotocol/clientCapabilities"
	MetaServerInfo         = "io.modelcontextprotocol/serverInfo"
	MetaLogLevel           = "io.modelcontextprotocol/logLevel"
	MetaSubscriptionID     = "io.modelcontextprotocol/subscriptionId"
	metaProgressToken      = "progressToken"

	// MetaInstance is of our own: it names a running program in the answer to its
	// handshake, so that one which reaches itself knows it.
	MetaInstance = "toolcrib/instance"
)

// The methods that the wire itself answers or sends.
const (
	MethodInitialize  = "initialize"
	MethodDiscover    = "server/discover"
	MethodPing        = "ping"
	MethodListen      = "subscriptions/listen"
	NotifyInitialized = "notifications/initialized"
	NotifyCancelled   = "notifications/cancelled"
	NotifyProgress    = "notifications/progress"
	NotifySubscribed  = "notifications/subscriptions/acknowledged"
	NotifyLog         = "notifications/message"
)

// The HTTP headers of the protocol.
const (
	HeaderSession     = "Mcp-Session-Id"
	HeaderVersion     = "Mcp-Protocol-Version"
	HeaderMethod      = "Mcp-Method"
	HeaderName        = "Mcp-Name"
	HeaderParamPrefix = "Mcp-Param-"
	HeaderLastEvent   = "Last-Event-Id"
)
