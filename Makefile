# Needs Go, make and git. Everything else the go command fetches.

.DEFAULT_GOAL := help

BINARIES := leader teammate teamctl
SOURCES  := $(wildcard cmd pkg e2e bench deploy examples mutants)

# What the programs say of themselves; the go command stamps nothing where GOFLAGS says
# -buildvcs=false, and without git nobody knows.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/leader, bin/teammate and bin/teamctl
	CGO_ENABLED=0 go build -trimpath -ldflags='-s -w -X agentteam/pkg/telemetry.version=$(VERSION)' -o bin/ $(BINARIES:%=./cmd/%)

.PHONY: page-types
page-types: ## check the types of the page, by tsc 4.8 or newer (10 s)
	tsc -p pkg/api/web

.PHONY: page
page: ## make the page for people, pkg/api/web/dist, of its sources
	go test ./pkg/api/web -run 'TestDist|TestWeight' -update -count=1

.PHONY: demo
demo: build ## a whole team surveys DIR (default: this repository); no key, no network
	./bin/teamctl demo $(if $(DIR),"$(DIR)")

.PHONY: test
test: vet ## vet, gofmt, and the tests but the long ones, without the race detector (10 min)
	@.ci/test

# The race detector needs a C compiler; the go command turns cgo off if it finds none.
.PHONY: test-all
test-all: vet ## vet, gofmt, and all tests, with the race detector where it can run (35 min)
	@race=; if [ "$$(go env CGO_ENABLED)" = 1 ]; then race=-race; else echo "*** NO C COMPILER FOUND: TESTING WITHOUT THE RACE DETECTOR ***" >&2; fi; \
		AGENTTEAM_TEST_ALL=1 .ci/test $$race

.PHONY: check
check: vet ## go vet, gofmt, the house rules, and short tests of what differs from main and of its importers
	@changed=$$(.ci/changed); echo "go test -short" $$changed; \
		go test -vet=off -p 3 -parallel 6 -short -timeout 5m ./pkg ./mutants $$changed

# bench is a module apart, so that what it compares with is no dependency
# of the programs.
.PHONY: vet
vet:
	go vet ./...
	go -C bench vet ./...
	@unformatted=$$(gofmt -l $(SOURCES)) && test -z "$$unformatted" || \
		{ echo "not formatted, run make fmt: $$unformatted" >&2; exit 1; }

# The packages whose promises rest on compare-and-set.
STORES := ./pkg/store/broker ./pkg/store/board/... ./pkg/store/mailbox ./pkg/store/journal ./pkg/store/feed ./pkg/team/blob ./pkg/store/roster ./pkg/store/registry ./pkg/store/election

.PHONY: test-r3
test-r3: ## the tests of all stores against a cluster of three NATS servers
	AGENTTEAM_TEST_REPLICATED=1 go test -p 1 -parallel 1 -timeout 20m $(STORES)

.PHONY: test-long
test-long: ## many processes on one board, 5 frozen teammates: LONG times (default 20) as long; a long task
	AGENTTEAM_TEST_LONG=$(or $(LONG),20) go test -count=1 -timeout 60m -v -run 'TestLinearizable|TestStress|TestCreators' ./pkg/store/board
	AGENTTEAM_TEST_LONG=$(or $(LONG),20) go test -count=1 -timeout 60m -v -run 'TestFrozenTeammates|TestLongTask$$' ./e2e

.PHONY: test-claims
test-claims: ## CLAIMS (default 1,000,000) claims by 64 workers, every write of them judged
	AGENTTEAM_TEST_CLAIMS=$(or $(CLAIMS),1000000) go test -count=1 -timeout 120m -v -run 'TestClaims' ./pkg/store/board

.PHONY: test-compose
test-compose: ## build the images, start docker-compose.yml and have it do work; needs an engine, no registry
	go vet -tags compose ./e2e/compose
	go test -tags compose -count=1 -timeout 20m -v ./e2e/compose

.PHONY: mutants
mutants: ## plant known bugs, MUTANT=name for one, in copies of the tree: each must be caught
	go run ./mutants $(MUTANT)

BENCH_RUN = go -C bench build -o ../bin/bench . && ./bin/bench

.PHONY: bench
bench: build ## measure the board and an agent, quickly; prints tables and, last of each, a line of JSON
	@BENCH=quick $(BENCH_RUN) board && BENCH=quick ./bin/bench agent

.PHONY: bench-board
bench-board: build ## measure the board at all sizes, up to 100,000 tasks (8 min; BENCH=quick within 1)
	@$(BENCH_RUN) board

.PHONY: bench-recovery
bench-recovery: build ## measure how soon a team is at work again after kills (10 min; BENCH=quick within 3)
	@$(BENCH_RUN) recovery

.PHONY: bench-api
bench-api: build ## measure the HTTP API: 500 streams, late readers, lists (7 min; BENCH=quick within 1)
	@$(BENCH_RUN) api

.PHONY: bench-page
bench-page: build ## measure the page in Chromium: 50 members, 1,000 tasks, 100 events a second (6 min; BENCH=quick within 2)
	@$(BENCH_RUN) page

.PHONY: bench-agent
bench-agent: build ## measure an agent beside a plain loop over the same endpoint (2 min; BENCH=quick within 1)
	@$(BENCH_RUN) agent

.PHONY: bench-hands
bench-hands: ## measure the start of commands in each sandbox, searches of 50,000 files beside rg, first builds, and worktrees (5 min; BENCH=quick 1)
	@$(BENCH_RUN) hands

.PHONY: lint
lint: ## go vet and staticcheck, which is fetched on first use
	@for m in . bench; do echo "staticcheck of $$m"; go -C $$m vet ./... && go -C $$m run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./... || exit; done

.PHONY: fmt
fmt: ## format the Go code
	gofmt -w $(SOURCES)

.PHONY: clean
clean: ## remove the binaries and the demo's workspace
	rm -rf bin agentteam-demo
