package config

import (
	"fmt"
	"io"
	"log/slog"
)

const redacted = "REDACTED"

// A Secret is a text that is never printed: fmt, slog and encoding/json write REDACTED,
// or nothing if it is empty. The zero Secret is empty.
type Secret struct {
	text *string // a pointer, so that not even a look at memory by reflection prints it
}

// NewSecret returns s as a Secret.
func NewSecret(s string) Secret {
	if s == "" {
		return Secret{}
	}
	return Secret{&s}
}

// Reveal returns the text itself.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero reports whether there is no text.
func (s Secret) IsZero() bool { return s.text == nil }

// String returns REDACTED, or "".
func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return redacted
}

// Format implements [fmt.Formatter] for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue implements [slog.LogValuer].
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText implements [encoding.TextMarshaler], which encoding/json uses.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
