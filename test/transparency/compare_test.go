package transparency

import (
	"fmt"
	"strings"
)

// A route is the way of an exchange: the era of the client, and that of the upstream.
type route struct{ client, upstream bool } // whether it is stateless

func (r route) String() string {
	era := map[bool]string{false: "stateful", true: "stateless"}
	return era[r.client] + " to " + era[r.upstream]
}

// An outcome is all that an exchange leaves: what the client got and what the upstream was asked.
type outcome struct {
	id            string
	result, error *tree
	notes         []toldNote
	asked         []*tree // params of the requests that reached the upstream
}

type toldNote struct {
	method string
	params *tree
}

func (o *outcome) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "id %s\nresult %s\nerror %s\n", o.id, o.result, o.error)
	for _, n := range o.notes {
		fmt.Fprintf(&b, "note %s %s\n", n.method, n.params)
	}
	for _, a := range o.asked {
		fmt.Fprintf(&b, "asked %s\n", a)
	}
	return b.String()
}

// A normalisation takes a difference away that has a reason.
type normalisation struct {
	name, reason string
	applies      func(r route) bool
	apply        func(direct, through *outcome)
}

func always(route) bool { return true }

func statelessClient(r route) bool { return r.client }

// both does the same to all that the upstream was asked.
func both(do func(asked *tree)) func(direct, through *outcome) {
	return func(direct, through *outcome) {
		for _, o := range []*outcome{direct, through} {
			for _, a := range o.asked {
				do(a)
			}
		}
	}
}

const (
	metaServerInfo = "io.modelcontextprotocol/serverInfo"
	metaLogLevel   = "io.modelcontextprotocol/logLevel"
)

// normalisations are all differences that are meant.
func normalisations() []normalisation {
	return []normalisation{
		{"progress token upstream", "each connection has progress tokens of its own, and the gateway asks for progress with every call",
			always, both(func(asked *tree) { asked.dropMeta("progressToken") })},
		{"era of the request", "protocol version, client info and client capabilities in _meta belong to one hop, in the era that has them",
			always, both(func(asked *tree) {
				asked.dropMeta("io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientInfo", "io.modelcontextprotocol/clientCapabilities")
			})},
		{"log level of the request", "the gateway asks a stateless upstream for log messages with each call, and passes on what the client wants",
			func(r route) bool { return r.upstream }, both(func(asked *tree) { asked.dropMeta(metaLogLevel) })},
		{"no arguments", "absent arguments and null are an object without members, which is what they mean",
			always, both(func(asked *tree) {
				if v := asked.get("arguments"); v.String() == "null" || v.String() == "{}" {
					asked.drop("arguments")
				}
			})},
		{"resultType", "the stateless era demands it of every result, and a stateful upstream has none",
			func(r route) bool { return r.client && !r.upstream }, func(_, through *outcome) {
				if through.result.get("resultType").String() == `"complete"` {
					through.result.drop("resultType")
				}
			}},
		{"serverInfo", "the stateless era names in _meta who answered; the gateway does where the upstream does not",
			statelessClient, func(direct, through *outcome) {
				switch {
				case direct.result.get("_meta") == nil:
					through.result.dropMeta(metaServerInfo)
				case direct.result.get("_meta", metaServerInfo) == nil:
					through.result.get("_meta").drop(metaServerInfo)
				}
			}},
		{"caching", "the stateless era demands ttlMs and cacheScope of what is read, and a stateful upstream has none",
			func(r route) bool { return r.client && !r.upstream }, func(direct, through *outcome) {
				if direct.result.get("contents") != nil {
					through.result.drop("ttlMs", "cacheScope")
				}
			}},
	}
}

// differences removes what is meant, notes which normalisations had something to do, and returns what is left.
func differences(r route, direct, through *outcome, used map[string]bool) string {
	for _, n := range normalisations() {
		if !n.applies(r) {
			continue
		}
		before := direct.String() + through.String()
		n.apply(direct, through)
		if direct.String()+through.String() != before {
			used[n.name] = true
		}
	}
	a, b := direct.String(), through.String()
	if a == b {
		return ""
	}
	return differingLines(a, b)
}

// differingLines returns the lines in which two texts differ.
func differingLines(a, b string) string {
	left, right := strings.Split(a, "\n"), strings.Split(b, "\n")
	var out strings.Builder
	for i := range max(len(left), len(right)) {
		var l, r string
		if i < len(left) {
			l = left[i]
		}
		if i < len(right) {
			r = right[i]
		}
		if l != r {
			fmt.Fprintf(&out, "\ndirectly: %s\nthrough:  %s", l, r)
		}
	}
	return out.String()
}
