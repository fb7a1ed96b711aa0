#!/usr/bin/env bash
# image.sh VERSION: builds the images with docker; without it, archives of the same binaries
# in bin/ (`docker load`, `kind load image-archive`, `ctr images import` take them).
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:?usage: image.sh VERSION}
declare -A names=([sidecar]=soloist [injector]=soloist-injector)
for target in sidecar injector; do
	ref=ghcr.io/soloist-dev/${names[$target]}:$version
	if docker version >/dev/null 2>&1; then
		docker build --target "$target" --build-arg "VERSION=$version" --tag "$ref" .
		docker image inspect --format "$ref: {{.Size}} bytes" "$ref"
		continue
	fi
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$version" -o "bin/$target" "./cmd/$target"
	(cd e2e && go run ./tools/mkimage "../bin/$target.tar" "$ref" "../bin/$target")
	echo "$ref: bin/$target.tar, $(stat -c %s "bin/$target.tar") bytes"
done
