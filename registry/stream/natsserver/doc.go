// Package natsserver runs a NATS server with JetStream inside the process, for
// installations that need no server of their own. It keeps streams in a folder,
// and listens on a loopback address with a token that it makes, so that workers
// on the same machine can connect.
//
// # What is synced when
//
// With [SyncGrouped], the default, Add of a client of this server returns when
// its event is on disk: the events that come together are synced together.
// What others write to the server through a connection of their own, and
// acknowledgements, are on disk within [SyncInterval]. A process that dies, or
// is killed, loses nothing that was answered; a power cut may bring back events
// that were acknowledged in the last seconds before it.
//
// With [SyncEvery] every write is synced on its own, acknowledgements too. With
// [SyncLater] Add returns when the operating system has the event, and a power
// cut may lose what was added within the last SyncInterval.
package natsserver
