// Package sqlstore implements package store on SQLite, without cgo: a file that
// several processes may share, or memory.
package sqlstore
