// Package view decides what one caller sees of a catalog. Everything that shows
// tools to a caller shows them through it, so that all entrances agree.
//
// A [View] is the visible tools of one snapshot. A [Format] encodes them once
// for all the callers of one visibility class, and the [List] that it gives is
// cut into pages by an opaque cursor, which stays good when the catalog changes
// between two pages. [Shown] remembers what a caller was shown last, to tell
// whether it would see something else now.
package view
