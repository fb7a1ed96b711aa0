# The images: one static binary each and nothing else. `make image` builds them for this
# machine; docker buildx build --platform linux/amd64,linux/arm64 --target sidecar . for both.

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
    go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$VERSION" -o /out/ ./cmd/sidecar ./cmd/injector

# CA certificates and a user, without a shell. By number, so that runAsNonRoot can tell
# that it is not root.
FROM gcr.io/distroless/static:nonroot AS injector
COPY --from=build /out/injector /injector
USER 65532:65532
ENTRYPOINT ["/injector"]

FROM gcr.io/distroless/static:nonroot AS sidecar
COPY --from=build /out/sidecar /sidecar
USER 65532:65532
ENTRYPOINT ["/sidecar"]
CMD ["elect"]
