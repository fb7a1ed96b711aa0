# The sidecar: one static binary and nothing else. `make image` builds it for this
# machine, `docker buildx build --platform linux/amd64,linux/arm64 .` for both.

FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS=linux
ARG TARGETARCH
ARG VERSION=unknown
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY cmd cmd
COPY internal internal
# The same flags as in the Makefile, so that the same commit gives the same bytes.
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /out/sidecar ./cmd/sidecar

# CA certificates and a user, without a shell.
FROM gcr.io/distroless/static:nonroot
COPY --from=build /out/sidecar /sidecar
# By number, so that runAsNonRoot can tell that it is not root.
USER 65532:65532
ENTRYPOINT ["/sidecar"]
CMD ["elect"]
