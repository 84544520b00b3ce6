// Package redisstream implements package stream on Redis 7 or newer: Redis Streams for streams, Redis
// Pub/Sub for the bus.
//
// # Where things are
//
// With n for a name as Redis has it, in which '%', braces, '*', '?', brackets, '^', '\' and what is not printed are
// written as %XX:
//
//   - a stream is the Redis stream pulse:stream:n, as Pulse lays it out. An entry has the field "n", the event's name,
//     and the field "p", its payload, so that any program adds an event with
//     XADD pulse:stream:toolset:weather:requests * n call p '{…}';
//   - its sink is the consumer group of that name, and each worker a consumer with a name that is used once;
//   - {pulse:stream:n}:state holds the bound of the stream, how long its events live, and the lease;
//     {pulse:stream:n}:later says when what was given back may be delivered again;
//   - what is published goes to channels that begin with toolcrib:d:, where d is the number of the database.
//
// What the ACL of a user does not permit fails with [stream.ErrForbidden], or is logged where nobody waits for it.
//
// # Cost
//
// An acknowledged entry is deleted, so that a stream is as long as its queue. A sink holds one connection on which it
// waits, and when nothing happens it sends two commands in each half minute or lease. All other commands of a client
// share two connections: those of concurrent callers go out together.
//
// # What is safe when
//
// Add returns when Redis has answered. What is on disk by then is the server's configuration: with "appendfsync always"
// the event is, with "everysec" a power cut loses a second, and without an append-only file a restart loses all. A
// sink goes on in each case; what was lost must be added again by whoever has a record of it.
//
// A server with a policy that evicts streams when its memory is full is refused; one with noeviction refuses events
// then, which Add reports as [stream.ErrFull].
//
// The bus finds out who responds by asking the server for channels, so that a client talks to one server, which may
// have replicas, and not to Redis Cluster.
package redisstream
