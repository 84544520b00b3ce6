// Package registry routes calls of tools to workers: processes that run a
// toolset's tools wherever they live, and are reached over streams.
//
// A worker (package registry/provider) announces its toolset's [Contract] and
// takes calls from the toolset's request stream. A [Registry] puts the tools of
// every toolset that it admitted into a catalog as one source of tools, sends
// each call to the stream as a [ToolCallMessage], and gives its caller the
// [ToolResultMessage] that comes back.
//
// # What is promised
//
// The stream delivers at least once, so the promises are made above it. A call
// of a tool that may have effects has a record in the store, which the registry
// alone writes. The record is there before the caller can rely on the call, it
// names one worker before that worker runs the tool, and it ends in exactly one
// result. A call whose worker died after that is answered as one whose outcome
// is not known; nothing is run a second time. Calls of pure, read-only and
// idempotent tools need none of this, and have no record unless
// [Options.RecordAll] says so.
//
// # Names
//
// The requests of a toolset are on the stream "toolset:<name>:requests". A
// request that names no way back is answered on the stream
// "result:<tool_use_id>".
package registry
