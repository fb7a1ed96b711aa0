// Package leasetest holds what tests of leases need: a store that can be broken on
// purpose, and the suite that every store passes.
//
// [Memory] is a [lease.Store] and [lease.Waker] in this process. It does, step by
// step, what redislease's scripts do, which a differential test checks against a
// real Redis; so a simulation with it says something about Redis.
//
// [Link] is the network between one client and a store: it delays, loses, doubles and
// reorders. [Clock] is the clock of one machine, which may run fast, jump, or sleep.
// Both use plain timers, so that a testing/synctest bubble drives them.
//
// [Conformance] is the contract of [lease.Store] and [lease.Waker] as tests.
package leasetest
