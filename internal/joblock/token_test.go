package joblock

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
)

func TestTokensAreRead(t *testing.T) {
	id := lease.NewToken()
	for _, want := range []Token{
		{lease: id, ttl: DefaultLease},
		{lease: id, ttl: time.Minute, slot: 3, slots: 20, handle: 7},
		{lease: id, ttl: DefaultLease, finish: lease.Finish{AtLeast: time.Second, Done: "a&b=c?#%", Keep: time.Hour}},
	} {
		got, err := ParseToken(want.Reveal())
		if err != nil || got != want {
			t.Errorf("%q: %#v, %v", want.Reveal(), got, err)
		}
	}
	if s := (Token{lease: id, ttl: DefaultLease}).Reveal(); len(s) != 32 {
		t.Errorf("a plain lock's token is %q", s)
	}
}

func TestTokensAreSecret(t *testing.T) {
	token := Token{lease: lease.NewToken(), ttl: DefaultLease}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if s := fmt.Sprintf(format, token); strings.Contains(s, string(token.lease)) {
			t.Errorf("%s shows it: %s", format, s)
		}
	}
}

func FuzzParseToken(f *testing.F) {
	id := string(lease.NewToken())
	for _, s := range []string{"", id, id + "?slot=1&slots=2", id + "?handle=1", id + "?once=a&keep=1h0m0s", id + "?x", id + "?"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		token, err := ParseToken(s)
		if err != nil {
			return
		}
		if token.Reveal() != s {
			t.Errorf("%q is read as %q", s, token.Reveal())
		}
		if token.slots < 0 || token.slots > MaxSlots || token.slot < 0 || token.slot > max(0, token.slots-1) || token.ttl <= 0 {
			t.Errorf("%q: slot %d of %d, lease %v", s, token.slot, token.slots, token.ttl)
		}
	})
}
