// Package api is the app's interface: HTTP on loopback, for the containers of this
// pod and nobody else.
//
// Every answer is judged at the moment it is given; nothing that says "leader" is ever
// stored. "valid_for_ms" in an answer counts from before the question was sent. In an
// event of a stream it counts from when the event was written, which a client that was
// paused can't tell: one that must be sure takes an event as a reason to ask /leader.
//
// # Who may ask
//
// Whoever reaches a loopback address of the pod. What changes something (any method but
// GET and HEAD) is refused to web pages in a browser on the same machine, as there is
// where somebody forwards the port: a Host header that names no loopback address is one
// of DNS rebinding (403 "host"), and Sec-Fetch-Site or Origin tell a foreign page (403
// "cross_site"). Clients that are no browsers send neither, and need no Content-Type.
//
// # Limits
//
// 16 KiB of headers, 64 KiB of body, 256 streams and long polls. A client that does not
// read is dropped, never waited for.
package api
