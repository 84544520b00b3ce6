// Package mcpwire is the wire of the Model Context Protocol as bytes, on both
// sides of a connection.
//
// A gateway relays what it does not understand, so the package never decodes
// params or results into Go values: they stay [json.RawMessage] from the
// socket of one peer to the socket of the other. It owns what surrounds them:
// JSON-RPC framing and identifiers, the handshakes of both protocol eras,
// sessions, streams, cancellation, progress tokens, and the transports stdio,
// streamable HTTP and, as a client, HTTP+SSE.
//
// The client side starts with [Connect], which takes a [Transport] and returns
// a [Client]. The server side is a [Server]: an [http.Handler] that serves
// both eras on one endpoint, and a pipe server ([Server.ServeStdio]).
//
// Revisions up to 2025-11-25 open a session with an initialize request
// ([EraStateful]); from 2026-07-28 on every request carries the version, the
// client and its capabilities in its _meta ([EraStateless]).
package mcpwire
