// Package mainpkg says how the program toolcrib is built from this module.
package mainpkg

// Path is the folder of the main package, from the root of the module.
const Path = "./cmd/toolcrib"

// Tags are the build tags that the program is built with. Without grpcnotrace
// the gRPC client brings in pages that are made by templates, which call methods
// by their name; then the linker keeps every method of every type, and the
// program is larger by a quarter.
const Tags = "grpcnotrace"
