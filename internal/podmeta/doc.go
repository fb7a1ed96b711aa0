// Package podmeta shows on the pod what its elections say: a label that a Service can
// select, annotations for people, an Event for each gain and loss of the lead, and, if
// wished, a condition for a readiness gate.
//
// What it shows is a hint; the lease decides. It is shown by an actor of its own, so
// that an API server that is slow, dead or refuses costs the election nothing. Only the
// newest state counts: what was not shown in time is never shown.
package podmeta
