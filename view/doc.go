// Package view decides what one caller sees of a catalog. Everything that shows
// tools to a caller shows them through it, so that all entrances agree.
//
// A [View] is the visible tools of one snapshot. A [Format] encodes them once
// for all the callers of one visibility class, and the [List] that it gives is
// cut into pages by an opaque cursor, which stays good when the catalog changes
// between two pages. [Shown] remembers what a caller was shown last, to tell
// whether it would see something else now.
//
// A [Discovery] decides which of them are declared, and which the caller has to
// find first; a [Memory] keeps what it has found, and [Declared] is what comes of
// both.
package view
