// Package arch holds the rules about the shape of this repository that no compiler
// checks, as tests: who may import whom and why, how long a file may be, what a
// script that writes to a lock must do. A rule about a package that does not exist
// yet waits for it.
package arch
