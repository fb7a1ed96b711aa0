package joblock

import (
	"errors"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
)

// A Token stands for a lease, or for one handle of a re-entrant one, in the hands of a
// client. It is opaque to clients, and a secret: it prints redacted.
type Token struct {
	lease  lease.Token
	slot   int
	slots  int    // 0: a plain lock
	handle uint64 // 0: not re-entrant
	ttl    time.Duration
	finish lease.Finish
}

var errToken = errors.New("that is no token of this program")

// String hides the token from fmt and logs.
func (Token) String() string { return "REDACTED" }

// GoString hides the token from %#v.
func (Token) GoString() string { return "REDACTED" }

// LogValue hides the token from slog.
func (Token) LogValue() slog.Value { return slog.StringValue("REDACTED") }

// Reveal returns what the client is given: 32 hexadecimal digits, and what differs from a
// plain lock as a query.
func (t Token) Reveal() string {
	q := url.Values{}
	if t.slots > 0 {
		q.Set("slot", strconv.Itoa(t.slot))
		q.Set("slots", strconv.Itoa(t.slots))
	}
	if t.handle > 0 {
		q.Set("handle", strconv.FormatUint(t.handle, 10))
	}
	if t.ttl != DefaultLease {
		q.Set("lease", t.ttl.String())
	}
	if t.finish.AtLeast > 0 {
		q.Set("least", t.finish.AtLeast.String())
	}
	if t.finish.Done != "" {
		q.Set("once", t.finish.Done)
		q.Set("keep", t.finish.Keep.String())
	}
	if len(q) == 0 {
		return string(t.lease)
	}
	return string(t.lease) + "?" + q.Encode()
}

// ParseToken reads what Reveal returned. It accepts nothing else.
func ParseToken(s string) (Token, error) {
	id, query, _ := strings.Cut(s, "?")
	if len(id) != 32 || strings.Trim(id, "0123456789abcdef") != "" {
		return Token{}, errToken
	}
	q, err := url.ParseQuery(query)
	if err != nil {
		return Token{}, errToken
	}
	t := Token{lease: lease.Token(id), ttl: DefaultLease}
	if ttl := q.Get("lease"); ttl != "" {
		t.ttl, _ = time.ParseDuration(ttl)
	}
	t.slot, _ = strconv.Atoi(q.Get("slot"))
	t.slots, _ = strconv.Atoi(q.Get("slots"))
	t.handle, _ = strconv.ParseUint(q.Get("handle"), 10, 64)
	t.finish.AtLeast, _ = time.ParseDuration(q.Get("least"))
	t.finish.Done = q.Get("once")
	t.finish.Keep, _ = time.ParseDuration(q.Get("keep"))
	if t.slot < 0 || t.slots < 0 || t.slots > MaxSlots || t.slot > 0 && t.slot >= t.slots ||
		t.ttl < MinLease || t.ttl > MaxLease || t.finish.AtLeast < 0 || t.finish.Keep < 0 || t.Reveal() != s {
		return Token{}, errToken
	}
	return t, nil
}

// claim returns what the token claims of a lock.
func (t Token) claim(lock string) lease.Claim {
	return lease.Claim{Lock: lock, Slots: t.slots, Token: t.lease}
}

// ending is what becomes of the lock: the record of a run only if it was done.
func (t Token) ending(done bool) lease.Finish {
	f := t.finish
	if !done {
		f.Done, f.Keep = "", 0
	}
	return f
}
