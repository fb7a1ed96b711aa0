// Package joblock keeps locks for jobs: what a program asks for that is no leader, but
// must not run twice. It hands out tokens, renews what they stand for, and says at the
// end whether it was held to the end.
//
// Each lock is a [lease.Term], as leadership is; there is no second mechanism. The rest is
// bookkeeping in this process: re-entry is a set of handles (the server counts nothing), a
// request asked twice is one attempt, and what has ended is remembered for a while, so
// that a client that repeats itself is told the same again.
//
// # Tokens
//
// A [Token] names the lease and says what is to be done at its end, so that any process
// with the token may release it or renew it, through any sidecar. Only the handles of a
// re-entrant lock mean something to the sidecar alone that gave them.
package joblock
