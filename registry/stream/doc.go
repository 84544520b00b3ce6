// Package stream is the one seam behind which calls travel between processes.
// It has two parts, and a [Client] offers both.
//
// Streams are durable work queues. [Stream.Add] puts an event on a stream; the
// workers that opened the stream's [Sink] share its events, and each event
// goes to one of them.
//
// The bus carries what is worth something only now: pings, answers, deltas of
// output, and questions. [Bus.Publish] reaches everybody who listens to a
// subject in that moment, [Bus.Request] asks one of those who respond to it.
// Nothing of the bus is kept.
//
// # Delivery
//
// An event that was added is delivered at least once. It is delivered again
// when a worker lets its lease end, gives it back, or dies, and also when the
// backend lost an acknowledgement, so a receiver must know an event that it
// has settled before. Only [Lease.Ack] removes an event; nothing is dropped
// to make room, and a stream that is full refuses with [ErrFull]. A stream is
// bounded by its number of events, and a backend bounds the bytes of all its
// streams together.
//
// First deliveries are in the order in which the events were added; what is
// delivered again comes when it comes. Events that one goroutine adds one
// after the other are in that order.
//
// A message of the bus is delivered at most once to each listener. Those that
// one client publishes to one subject arrive in order.
//
// # Leases
//
// A sink hands out an event under a lease of the sink's length, see
// [SinkOptions]. Until the lease ends nobody else gets the event.
// [Lease.Extend] starts the lease anew, as often as it is called, so that work
// may take longer than any lease. [Lease.Nack] ends it early.
//
// # Time and errors
//
// A context bounds how long a method waits. A context that ends while
// [Stream.Add] waits for the backend's answer leaves open whether the event
// was added, and so does [ErrUnavailable]; every other error of Add says that
// it was not. A connection that broke is made again without end, and a stream
// or sink that the backend forgot is made anew when it is next used: a
// [Sink.Receive] waits through both, and other methods wait as long as their
// context allows.
//
// # Names
//
// Streams, sinks, events and subjects have names of 1 to [MaxNameBytes] bytes
// of any valid UTF-8 text, and a colon parts them: "toolset:weather:requests".
// A backend maps the names to what it allows, and maps them back.
//
// All types of a backend may be used from many goroutines at once. Package
// natsstream implements the seam on NATS JetStream, with a server inside the
// process from package natsserver, package redisstream implements it on
// Redis, and package streamtest holds the suite that both pass.
package stream
