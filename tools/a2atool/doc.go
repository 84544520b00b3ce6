// Package a2atool offers the skills of a remote agent as tools, over the A2A
// protocol: version 1.0 by JSON-RPC, REST and gRPC, and version 0.3.
//
// A [Peer] is one agent. It reads the agent's card, makes a tool of every
// skill, and reads the card again when its time to live has ended. A call sends
// a message and waits until the agent's task has ended: by its stream when the
// agent has one, else by asking for the task now and then. What the agent says
// meanwhile is progress of the call. An agent that needs input has the caller
// asked for it, and goes on with the answer; where nobody can be asked, the
// question is the result, and the next call of the same session answers it.
//
// The conversation of a session (tenant, user and session of the caller) goes
// on from call to call: its context is kept, in bounded number, and is never
// used for another session.
//
// A Peer connects to the public internet over TLS only, unless its
// configuration allows more, whatever addresses the card names. Credentials go
// to the origin of the configured URL and to no other.
package a2atool
