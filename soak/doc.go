// Package soak lets many workers change one fenced register under job locks, while their
// sidecars and Redis are killed, frozen and cut off, and looks for what may not be: two
// holders at a time, a lost update, a history that no single register could have, and
// anything that is left behind. It is a module of its own, because of its dependencies.
package soak
