// Package peertest starts what the tests of this module stand beside: real MCP clients and servers, the
// protocol's conformance suite, and binaries of this module. Only tests import it.
//
// The npm peers are pinned by test/peers/package-lock.json and installed by scripts/peers. A test that
// needs one of them and does not find it fails; it never skips.
package peertest
