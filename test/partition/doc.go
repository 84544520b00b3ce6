// Package partition cuts the link between a worker and its gateway while calls
// are under way, and holds what callers were told against what the tools did.
//
// The worker lives in a network namespace of its own, at the other end of a pair
// of virtual interfaces, and the cut drops every packet in both directions, so
// that neither side hears that a connection ended. A kernel that grants no
// namespaces gets a proxy instead, which stops passing bytes on; the test says
// which way it went.
//
// TOOLCRIB_CUT is for how long the link is cut. With a minute the gateway pings
// as it does by default:
//
//	TOOLCRIB_CUT=60s go test -v -count=1 ./test/partition
package partition
