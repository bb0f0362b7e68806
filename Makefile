# Needs Go, make and git. Everything else the go command fetches.

.DEFAULT_GOAL := help

BINARIES := leader teammate teamctl
SOURCES  := $(wildcard cmd pkg e2e bench)

# The race detector needs a C compiler; the go command turns cgo off if it finds none.
RACE = $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-6s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/leader, bin/teammate and bin/teamctl
	CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o bin/ $(BINARIES:%=./cmd/%)

.PHONY: demo
demo: build ## a whole team surveys DIR (default: this repository); no key, no network
	./bin/teamctl demo $(if $(DIR),"$(DIR)")

.PHONY: test
test: ## go vet, gofmt and all tests, with the race detector where it can run
	go vet ./...
	@unformatted=$$(gofmt -l $(SOURCES)) && test -z "$$unformatted" || \
		{ echo "not formatted, run make fmt: $$unformatted" >&2; exit 1; }
	$(if $(RACE),,@echo "*** NO C COMPILER FOUND: TESTING WITHOUT THE RACE DETECTOR ***" >&2)
	go test $(RACE) -timeout 9m ./...

.PHONY: bench
bench: build ## measure beside bare JetStream; prints a table and, last, a line of JSON
	@go run ./bench core

.PHONY: lint
lint: ## go vet and staticcheck, which is fetched on first use
	go vet ./...
	go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...

.PHONY: fmt
fmt: ## format the Go code
	gofmt -w $(SOURCES)

.PHONY: clean
clean: ## remove the binaries and the demo's workspace
	rm -rf bin agentteam-demo
