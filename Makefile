.PHONY: test lint unit peers conformance build

# Everything that must hold: lint, unit and peers.
test:
	scripts/test all

# gofmt, go vet, staticcheck, go mod tidy.
lint:
	scripts/test lint

# The Go tests under the race detector.
unit:
	scripts/test unit

# The tests against real MCP clients, servers and the conformance suite (npm).
peers:
	scripts/test peers

# Runs the MCP conformance suite and rewrites its expectations and docs/conformance.md.
conformance:
	scripts/peers
	go test -tags peers -count=1 ./test/conformance -update

build:
	go build -trimpath -o bin/toolcrib ./cmd/toolcrib
