// Package api is the JSON protocol: POST /v1/tools/{method} with a JSON object,
// answered by a JSON object.
//
//	list       {filter, page, page_size}  → {tools, page, page_size, page_count, total_rows, aggregates}
//	get        {id}                       → one row of list
//	describe   {id}                       → everything a caller may know about a tool
//	call       {name, arguments, …}       → {call_id, is_error, structured, content, …}
//
// POST /v1/sources/list tells the state of what tools come from.
//
// A failure is {"error": {code, message, class, retryable, retry_after_ms,
// outcome_unknown, attempts}} with the HTTP status that belongs to its code.
// With "Accept: text/event-stream", call tells how far it is while it runs.
//
// Server serves the protocol and offers the same methods to Go; Client speaks
// it. A caller sees, in every method, only what its identity and scopes let it
// see.
package api
