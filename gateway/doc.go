// Package gateway makes one running Toolcrib out of a configuration: it reads
// toolcrib.yaml, and Open composes the catalog, the sources of tools and the
// entrances. The binary, the tests and the examples all start here.
package gateway
