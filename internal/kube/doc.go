// Package kube talks to the Kubernetes API server for the sidecar.
//
// It uses client-go's dynamic client for everything: typed clients would bring the types
// of all of Kubernetes into each sidecar (a binary of 26 MB for one kind of object; the
// dynamic one brings it to 10.7, of which 10.4 are the connection).
package kube
