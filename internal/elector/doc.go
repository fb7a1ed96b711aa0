// Package elector runs an election: it campaigns for a lock for as long as it is let,
// whatever fails, and says at any moment who leads.
//
// What it says is a [State], an immutable snapshot behind an atomic pointer that one
// goroutine writes. Whether this process leads is never stored: [State.At] computes it
// from the snapshot and the clock.
//
// A term that ends early (the app resigned, fell ill or silent) ends for the app at
// once, but its lease is given up only when the last validity handed out has run out,
// or when the app has said that it is done.
package elector
