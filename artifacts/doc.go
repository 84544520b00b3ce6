// Package artifacts keeps what is too large for a model's context: it stores
// content for a caller, gives it back in parts, and turns heavy results into
// bounded ones that refer to it.
//
// Content is in a bucket of gocloud.dev/blob, and who owns it, how long it is
// kept and how much of a quota it takes is in package store. An artifact belongs
// to a session, a user or a tenant; whoever else asks for it is told exactly what
// is told of an artifact that does not exist.
package artifacts
