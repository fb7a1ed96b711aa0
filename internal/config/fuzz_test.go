package config

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// FuzzParse: it never panics, a mistake is one line each, what validates does so again,
// and what was read prints without the password.
func FuzzParse(f *testing.F) {
	f.Add(uint8(0), "", "")
	f.Add(uint8(0), "--lock=a\n--store=redis://r\n--name=n", "")
	f.Add(uint8(0), "--lock\na=3\n--lock\nb\n--slots=2\n-h", strings.Join(least, "\n"))
	f.Add(uint8(0), "--lease-duration=1h\n--probe-address=\n--on-lost=exit", strings.Join(least, "\n"))
	f.Add(uint8(0), "--bogus\n-xyz\n---\n--=\n--\n-lock=a\n--redis://:p@r", "SOLOIST_STORE=rediss://u:p%40@r/1?db=2 redis://")
	f.Add(uint8(1), "--http-address=[::1]:1\n--timeout\n1s", "SOLOIST_LOCK=a=3\n=SOLOIST=\nSOLOIST_PORT_1_TCP=x")
	f.Add(uint8(2), "-ojson\n--lock=x", "SOLOIST_STORE_PASSWORD=p\nSOLOIST_STORE=unix:///s")
	f.Add(uint8(3), "--done\n--fence=1\n--hold-off=-0s", "")
	f.Add(uint8(4), "-o=json\n-test.v", "")
	f.Fuzz(func(t *testing.T, pick uint8, args, env string) {
		verb := verbs[int(pick)%len(verbs)].name
		split := func(s string) []string {
			if s == "" {
				return nil
			}
			return strings.Split(s, "\n")
		}
		c, _, err := Parse(verb, split(args), split(env))
		var help *HelpError
		switch {
		case errors.As(err, &help):
			if c != nil || help.Text == "" {
				t.Errorf("help %q with %+v", help.Text, c)
			}
		case err != nil:
			if c != nil {
				t.Errorf("%v with %+v", err, c)
			}
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if strings.TrimSpace(line) == "" {
					t.Errorf("an empty line in %q", err)
				}
			}
		default:
			if err := c.Validate(); err != nil {
				t.Errorf("what validated does not: %v", err)
			}
			again, _, err := Parse(verb, split(args), split(env))
			if err != nil || !reflect.DeepEqual(c, again) {
				t.Errorf("once %+v, then %+v, %v", c, again, err)
			}
			shown := fmt.Sprintf("%+v", c)
			for _, u := range c.Store.URLs {
				if p, err := u.parse(); err == nil && p.User != nil && !strings.Contains(shown, "REDACTED@") {
					t.Errorf("shows a user: %s", shown)
				}
			}
		}
	})
}
