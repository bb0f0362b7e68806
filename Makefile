# Needs Go, make and git. Everything else the go command fetches.

.DEFAULT_GOAL := help

BINARIES := leader teammate teamctl
SOURCES  := $(wildcard cmd pkg e2e bench deploy examples mutants)

# The race detector needs a C compiler; the go command turns cgo off if it finds none.
RACE = $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)

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

# Says again, of what go test has printed into a file, how each failed test began, without the log lines of
# its processes, and adds a table of how long each package took. It reads a file, since an awk at the end of a pipe may hold back lines.
define TIMES
awk '/^ *(--- FAIL|panic:|WARNING: DATA RACE)/ { left = 8 } \
	left > 0 && !/^ *time=[^ ]+ level=(DEBUG|INFO|WARN)/ { failed = failed substr($$0, 1, 300) "\n"; left-- } \
	($$1 == "ok" || $$1 == "FAIL") && $$3 ~ /^[0-9.]+s$$/ { took[$$2] = $$3 } \
	END { print "\nseconds  package"; fflush(); for (p in took) printf "%7.1f  %s\n", took[p], p | "sort -rn"; close("sort -rn"); \
		if (failed) printf "\nfailed:\n%s", failed }'
endef

# Most tests wait, so more run at once than there are cores. go vet has been run before,
# and the race detector need not rest for a second at the end of each process.
GOTEST = GORACE=atexit_sleep_ms=0 go test -vet=off -p 3 -parallel 6

# The packages whose tests start clusters of processes, each of which wants its beats and
# leases kept: these run after the others and with fewer at once.
CLUSTERS := e2e cmd/teamctl
GOTEST_CLUSTERS = GORACE=atexit_sleep_ms=0 go test -vet=off -p 1 -parallel 4

# The rules of the house read the tree: they run first, and no goroutines meet in them.
RULES := pkg mutants deploy

.PHONY: test
test: vet ## go vet, gofmt and all tests, with the race detector where it can run
	$(if $(RACE),,@echo "*** NO C COMPILER FOUND: TESTING WITHOUT THE RACE DETECTOR ***" >&2)
	@echo 'go test $(RACE) ./...'; log=$$(mktemp); trap 'rm -f "$$log" "$$log.status"' EXIT; \
		{ status=0; $(GOTEST) -timeout 5m $(RULES:%=./%) 2>&1 || status=$$?; \
		$(GOTEST) $(RACE) -timeout 20m $$(go list ./... | grep -vx $(RULES:%=-e agentteam/%) $(CLUSTERS:%=-e agentteam/%)) 2>&1 || status=$$?; \
		$(GOTEST_CLUSTERS) $(RACE) -timeout 40m $(CLUSTERS:%=./%) 2>&1 || status=$$?; \
		go -C bench test . 2>&1 || status=$$?; \
		echo $$status >"$$log.status"; } | tee "$$log"; $(TIMES) "$$log"; exit "$$(cat "$$log.status")"

.PHONY: check
check: vet ## go vet, gofmt, the house rules, and short tests of what differs from main and of its importers
	@changed=$$(.ci/changed); echo "go test -short" $$changed; \
		$(GOTEST) -short -timeout 5m ./pkg ./mutants $$changed

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
