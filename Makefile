.PHONY: test lint unit modules peers conformance build

# Everything that must hold: lint, unit, modules and peers.
test:
	scripts/test all

# gofmt, go vet, staticcheck, go mod tidy.
lint:
	scripts/test lint

# The Go tests under the race detector.
unit:
	scripts/test unit

# go vet and the tests of the nested modules.
modules:
	scripts/test modules

# The tests against real MCP clients, servers and the conformance suite (npm).
peers:
	scripts/test peers

# Runs the MCP conformance suite and rewrites its expectations and docs/conformance.md.
conformance:
	scripts/peers
	go test -tags peers -count=1 ./test/conformance -update

build:
	go build -tags grpcnotrace -trimpath -o bin/toolcrib ./cmd/toolcrib
