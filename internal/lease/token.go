package lease

import (
	"crypto/rand"
	"encoding/hex"
	"log/slog"
)

// A Token is the secret of one attempt: 128 random bits in hexadecimal. A token
// for which a release was ever sent is never used again. It prints redacted;
// convert it to a string to send it.
type Token string

// NewToken returns a fresh token. It is safe for concurrent use.
func NewToken() Token {
	var b [16]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	return Token(hex.EncodeToString(b[:]))
}

// String hides the token from fmt and logs.
func (Token) String() string { return "REDACTED" }

// GoString hides the token from %#v.
func (Token) GoString() string { return "REDACTED" }

// LogValue hides the token from slog.
func (Token) LogValue() slog.Value { return slog.StringValue("REDACTED") }
