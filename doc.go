// Package toolcrib is the root of the module and holds no code. Package tools has the vocabulary and the
// catalog, tools/inproc makes tools of Go functions, gateway opens a configured catalog with everything
// around it, and cmd/toolcrib is the program.
package toolcrib
