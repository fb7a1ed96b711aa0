// Package lease is the domain of Soloist: what it means to hold a lock for a
// time, and the one primitive that does it.
//
// # Words
//
// A lock is a name. It has one slot, or N. A lease is a slot held for a time; a
// term is one holding of it, from grant to end. A token is the secret of one
// attempt to get it. A fence is a number that names the term and rises from
// term to term. Belief is what a holder may say now: a pure function of the
// last confirmed request and the clock, never a stored boolean.
//
// # Assumed
//
//   - The store keeps its data, and executes each request at most once per
//     delivery, whole or not at all. A request or its reply may be lost,
//     delayed, delivered twice, or overtaken by one from another connection.
//   - The store's clock and ours run at the same rate to within 1 %. They need
//     not agree on the time.
//   - A [FailureDetector], where one is used, never calls a living holder dead.
//   - CLOCK_BOOTTIME, where the system has it, counts while the machine is
//     suspended.
//
// # Promised
//
//  1. At any instant at most one holder per slot believes that it holds it.
//     [Validity] runs from before the last successful request was sent, and
//     ends before the store lets anybody else in (see [Timing]).
//  2. Each term has a fence strictly higher than that of every earlier term of
//     its lock, also across a loss of the store's data: the floor of a new fence
//     is the greater of the store's time in microseconds and the highest fence
//     the candidate has seen.
//  3. Belief ends on time whatever hangs: it is computed at each read, and the
//     term's own timer, which only a confirmed renewal moves, tells those who
//     wait.
//  4. No answer is not a verdict. Only granted and refused are verdicts;
//     anything else leaves belief to run to its end, and extends nothing.
//
// # Not promised
//
//   - That guarded work stops in time. Carry the fence to what it writes, and let
//     the resource refuse a lower one.
//   - Exclusion through a store that forgets: a failover or restart that loses
//     the key, an eviction, a forced unlock. The fence still rises.
//   - Anything against a pause of the whole machine that no clock of it shows.
//
// # What to watch
//
// The time since the last confirmed renewal against the renew deadline, ends of
// terms by cause, clock jumps, and what the store's check says at start.
package lease
