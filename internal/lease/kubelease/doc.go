// Package kubelease keeps leases in Lease objects (coordination.k8s.io/v1) of Kubernetes,
// for clusters without Redis.
//
// # Objects
//
// A lock is the Lease of its name in one namespace, so a lock's name is a DNS-1123
// subdomain. What people read is in the spec, as usual: holderIdentity, acquireTime,
// renewTime, leaseDurationSeconds, leaseTransitions. What the protocol reads is in
// annotations:
//
//	soloist.dev/token     the first half of the SHA-256 of the holder's token: who may read
//	                      Leases can't use it
//	soloist.dev/fence     the highest fence granted
//	soloist.dev/lease-ms  the lease's length
//	soloist.dev/pod-uid   the holder's pod
//	soloist.dev/address   its HTTP address
//	soloist.dev/burned    hashes of the last 8 released tokens, with "+" if they held
//
// All else in the object is left as it is. Objects are never deleted, since the fence is
// in them. One that was deleted is made anew when it is needed, as a forced unlock.
//
// # Protocol
//
// Each change is a PUT of what was read, with its uid and resourceVersion: the server
// refuses it if anything has changed since. A request that the network delays does no
// harm, nor does a client that sleeps between the two. After a refusal the object is
// read and judged again.
//
// # Time
//
// The server ends no lease, and its clock is not asked. A lease has run out for an observer
// that has seen the same write of its holder for the lease's whole length, by its own
// monotonic clock, from after the reply that showed it first; the holder counts its belief
// from before the request. So an observer that comes late waits for a whole lease, and two
// observers may differ for a while. Only the compare-and-set decides.
//
// A fence is at least the server's time in microseconds, by the Date of its reply: it
// rises also across a deleted object and a restored etcd.
//
// # Waiting
//
// There is no line and no order. A waiter that was refused watches the one object: a
// watch of all Leases in the namespace would bring every renewal of every lock to every
// waiter, and could not be permitted by name. With each renewal seen it sleeps anew until
// the lease would have run out, so a waiter sends no requests while the holder lives. What
// comes free is looked at within 50 ms at random, so that a crowd does not try at once.
// Without the permission to watch, waiters look once a lease.
//
// # Permissions
//
// On leases of coordination.k8s.io in the namespace:
//
//	get create update watch
//
// get, update and watch may be confined to the locks' names by resourceNames; create can't,
// but is not needed for Leases that exist. One without a spec is a free lock.
package kubelease
