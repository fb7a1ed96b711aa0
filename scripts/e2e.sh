#!/usr/bin/env bash
# e2e.sh [GO TEST FLAG]…: runs the tests in a cluster: the one of E2E_KUBECONFIG, one of kind,
# or a node made here (root; the first time it takes some 15 minutes to build).
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -z "${E2E_KUBECONFIG:-}" ] && ! { command -v kind && docker version; } >/dev/null 2>&1; then
	e2e/node/node deps
	e2e/node/node build
fi
if [ -x "${SOLOIST_E2E_HOME:-$HOME/.cache/soloist-e2e}/bin/kube-apiserver" ]; then # needs no node
	E2E=1 go test -count=1 -timeout 15m -run 'TestConformance$' ./internal/lease/kubelease
fi
cd e2e
E2E=1 go test -count=1 -timeout 45m "$@" ./...
