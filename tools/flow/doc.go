// Package flow composes tools into a typed graph that is itself a tool.
//
// A [Definition] has nodes and directed edges without a circle, from one entry to
// one exit. A node calls a tool, runs a Go function or another flow, or asks the
// caller; its inputs, the conditions of its edges and the flow's output are
// expressions over the flow's inputs and the results of the nodes before it.
// [Compose] checks all of that; [Flow.Run] runs it, and [RegisterAsTool] puts it
// into a catalog.
//
// # Order
//
// A node runs once every edge into it is settled: its source is finished, or will
// never run. An edge is taken when its source ran and its condition holds. A node
// into which no taken edge leads does not run, nor does one that joins all of its
// edges while one of them is not taken. Nodes that may run at the same time do, up
// to a bound. Which nodes run, and what they are given, does not depend on how
// long any of them takes.
//
// # Failure
//
// A node that fails ends the flow unless its OnError says otherwise: skip goes on
// with null in its place, fallback with what another node gives, and compensate
// ends the flow after the Undo nodes of those that had completed, the last first.
// When a flow ends early, what is running is cancelled and waited for.
//
// # Budget
//
// A flow may be limited in time, in nodes run, in calls and in cost. On each axis
// the smaller of its own limit and its caller's counts, and a flow inside a flow
// spends the budget of both.
package flow
