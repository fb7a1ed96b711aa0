// Package inject puts the sidecar into pods that ask for it. It is pure: it judges a pod
// and changes it, and talks to nobody. The chart's policies and its template for pods
// that are written by hand make the same container, which a test compares.
package inject
