// Package natsstream implements package stream on NATS: JetStream for streams,
// core NATS for the bus. It talks to a server or a cluster by URL, or to the
// server that package natsserver runs inside the process; it needs version 2.12
// of the server or newer.
//
// # Where things are
//
// With the prefix "toolcrib", which is the default, and n for a name as
// [Token] writes it:
//
//   - a stream is the JetStream stream toolcrib~n, a work queue in files that
//     refuses what is beyond its bound. Event e is published to the subject
//     toolcrib.stream.s.e, where s is the name with a dot for each colon, so
//     that any NATS client can add one. The stream takes toolcrib.stream.n.e too;
//   - its sink is a durable pull consumer, whose name is that of the sink;
//   - short-lived streams share the JetStream stream toolcrib-short, with
//     subjects toolcrib.short.n.e and a time to live for each message;
//   - messages of the bus go to toolcrib.bus.s.e, and questions, which one of
//     a queue group gets, to toolcrib.ask.s.e;
//   - what the server and others answer to a client comes to _INBOX, or with
//     [Options].Inbox to toolcrib.inbox.s.
//
// As each part of a subject's name is a token of its own, the permissions of a
// user of the server can say which names it may use. What they do not permit
// fails with [stream.ErrForbidden], or is logged where nobody waits for it.
//
// # What is safe when
//
// Add returns when the server has answered that it stored the event. What the
// server has done by then is the server's configuration: with sync_always the
// event is on disk, in a cluster it is with a majority, and otherwise the
// operating system has it and writes it out within sync_interval. See package
// natsserver for what the server inside the process does.
package natsstream
