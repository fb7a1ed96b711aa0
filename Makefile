# `make` lists the targets. Needed: Go, make, git, a C compiler for the race detector, and
# redis-server or valkey-server for the tests, which scripts/need-redis.sh installs if it may.

.DEFAULT_GOAL := help
.NOTPARALLEL:

export GOWORK := off

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
FUZZTIME ?= 20s
TESTFLAGS ?=

# Every Go module but tools/, whose code is not ours, and e2e/node, which is Kubernetes.
MODULES := $(filter-out ./tools ./e2e/node,$(patsubst %/go.mod,%,$(wildcard ./go.mod ./*/go.mod ./*/*/go.mod)))
TOOL := go tool -modfile=$(CURDIR)/tools/go.mod

# The platform is named so that the list is the same wherever it is made.
DEPS = list=$$(GOOS=linux GOARCH=amd64 CGO_ENABLED=0 go list -deps -f '{{if not .Standard}}{{.ImportPath}}{{end}}' ./cmd/sidecar) && \
	echo "$$list" | LC_ALL=C sort

# in-modules runs a command in each module, and stops at the first that fails.
in-modules = @set -e; for m in $(MODULES); do echo "$$m: $(1)"; (cd $$m && $(1)); done

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build bin/sidecar: static, stripped, without paths of this machine
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/sidecar ./cmd/sidecar

test: redis cc ## Run all tests under the race detector
	$(call in-modules,go test -race -timeout 30m $(TESTFLAGS) ./...)

test-short: ## Run the quick tests, without the race detector
	go test -short $(TESTFLAGS) ./...

lint: ## Lint all modules, formatting included
	$(call in-modules,$(TOOL) golangci-lint run)

fmt: ## Format the Go files
	$(call in-modules,$(TOOL) golangci-lint fmt)

mutants: redis ## Break the code on purpose; a test must notice each time (RUN=regexp for some)
	go run ./internal/mutate $(if $(RUN),-run '$(RUN)') scripts/mutants.txt

fuzz: ## Run each fuzz target for FUZZTIME (20s)
	scripts/fuzz.sh $(FUZZTIME)

tidy: ## Tidy go.mod and go.sum of each module
	$(call in-modules,go mod tidy)

deps: ## Write the list of packages that the sidecar links, cmd/sidecar/deps.txt
	$(DEPS) > cmd/sidecar/deps.txt

check: build lint check-tidy check-deps test mutants ## All that CI runs; at the end nothing may be uncommitted
	git diff --exit-code

check-tidy:
	$(call in-modules,go mod tidy -diff)

check-deps:
	@$(DEPS) | diff -u cmd/sidecar/deps.txt - || \
		{ echo 'The sidecar links other packages than cmd/sidecar/deps.txt says. If that is meant: make deps'; exit 1; }

vuln: ## Look for known vulnerabilities (needs the network, so it is not part of check)
	$(call in-modules,$(TOOL) govulncheck ./...)

demo: build redis ## Show an election, a hand-over and a crash (STORE=redis://… to use another Redis)
	cd examples/city-ids && go run ./cmd/demo --sidecar $(CURDIR)/bin/sidecar $(if $(STORE),--store '$(STORE)')

image: ## Build the images with docker, or without it archives of them in bin/
	scripts/image.sh $(VERSION)

e2e: ## Test in a real cluster: E2E_KUBECONFIG, kind, or a node made here (TESTFLAGS=…)
	scripts/e2e.sh $(TESTFLAGS)

bench: redis ## Measure, and compare with other lock libraries (ARGS=… for the program)
	cd bench && go run . $(ARGS)

soak: redis cc ## Change one register under job locks while everything is killed and cut off, for FOR (5m)
	cd soak && go test -race -count=1 -v -timeout 48h -run TestSoak . -soak.for=$(or $(FOR),5m)

clean: ## Remove what the other targets made
	rm -rf bin
	go clean -testcache

redis:
	@scripts/need-redis.sh

cc:
	@command -v "$$(go env CC)" >/dev/null || \
		{ echo "The race detector needs a C compiler ($$(go env CC)): install gcc and the C library's headers."; exit 1; }

.PHONY: help build test test-short lint fmt mutants fuzz tidy deps check check-tidy check-deps vuln demo image e2e bench soak clean redis cc
