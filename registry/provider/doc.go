// Package provider is the loop of a worker: it takes the calls of one toolset
// from its request stream, has a [Handler] run them, and answers.
//
//	client, err := natsstream.Dial(ctx, "nats://127.0.0.1:4222", nil)
//	...
//	err = provider.Serve(ctx, client, "weather", provider.FromCatalog(cat), provider.Options{
//		Pong: provider.Pong(client, ""),
//	})
//
// [FromCatalog] makes a handler of a catalog's tools, so that what ran in the
// gateway's process moves to a worker by serving the same catalog here.
//
// Serve never waits for a tool in the loop that reads the stream. It extends the
// lease of every call that it has, so that a tool may run for as long as it
// needs; it claims a call whose tool may have effects before it runs it; and it
// acknowledges the call when its answer has arrived. A call that a worker cannot
// take, because its queue is full, is answered as overloaded.
package provider
