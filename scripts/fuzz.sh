#!/bin/sh
# Runs each fuzz target of the root module for the time given, one after the other.
# usage: scripts/fuzz.sh 20s
set -eu
cd "$(dirname "$0")/.."

go list -f '{{.Dir}}' ./... | while read -r dir; do
	grep -ohE '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go 2>/dev/null | sed 's/^func //' | while read -r name; do
		go test -run '^$' -fuzz "^$name\$" -fuzztime "$1" "$dir" </dev/null
	done
done
