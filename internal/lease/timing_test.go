package lease_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
)

func TestTimingValidate(t *testing.T) {
	s := time.Second
	for _, c := range []struct {
		lease, deadline, retry time.Duration
		want                   []string
	}{
		{15 * s, 10 * s, 2 * s, nil},
		{3 * s, 2 * s, 400 * time.Millisecond, nil},
		{10*s + 200*time.Millisecond + 10*time.Millisecond, 10 * s, 5 * s, nil},
		{10*s + 200*time.Millisecond + 9*time.Millisecond, 10 * s, 5 * s,
			[]string{"renew-deadline × 1.02 + 10ms must be ≤ lease-duration: 10s × 1.02 + 10ms = 10.21s > 10.209s"}},
		{15 * s, 10 * s, 5*s + 1, []string{"retry-period × 2 must be ≤ renew-deadline: 5.000000001s × 2 > 10s"}},
		{0, 0, 0, []string{"lease-duration must be", "renew-deadline must be", "retry-period must be", "10ms"}},
		{1<<63 - 1, 1<<63 - 1, 2 * s, []string{"lease-duration must be at most 720h0m0s"}},
		{-s, 10 * s, 2 * s, []string{"lease-duration must be at least 1ms, is -1s", "≤ lease-duration"}},
	} {
		err := lease.Timing{LeaseDuration: c.lease, RenewDeadline: c.deadline, RetryPeriod: c.retry}.Validate()
		if (err == nil) != (c.want == nil) {
			t.Errorf("%v/%v/%v: %v", c.lease, c.deadline, c.retry, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v/%v/%v: %q lacks %q", c.lease, c.deadline, c.retry, err, want)
			}
		}
	}
	for _, d := range []time.Duration{s, 15 * s, time.Hour} {
		if err := lease.JobTiming(d).Validate(); err != nil {
			t.Errorf("JobTiming(%v): %v", d, err)
		}
	}
}

// Belief must end before the lease does for any valid timing, though the holder's clock
// runs 1 % slower than the store's.
func TestBeliefEndsBeforeTheLease(t *testing.T) {
	for deadline := time.Millisecond; deadline < time.Hour; deadline += deadline/3 + time.Millisecond {
		timing := lease.Timing{LeaseDuration: deadline + deadline/50 + 10*time.Millisecond, RenewDeadline: deadline, RetryPeriod: deadline / 2}
		if timing.Validate() != nil {
			continue
		}
		if slow := timing.Belief() + timing.Belief()/99; slow >= timing.LeaseDuration {
			t.Errorf("%v: belief lasts %v on a slow clock", timing, slow)
		}
	}
}

func TestTokensDoNotPrint(t *testing.T) {
	token := lease.NewToken()
	var log strings.Builder
	l := slog.New(slog.NewTextHandler(&log, nil))
	g := lease.Grant{Claim: lease.Claim{Lock: "x", Token: token}}
	l.Info("m", "token", token, "grant", g)
	for _, s := range []string{fmt.Sprint(token), fmt.Sprintf("%v %+v %#v %s %q", g, g, g, token, token), log.String()} {
		if strings.Contains(s, string(token)) {
			t.Errorf("a token shows in %s", s)
		}
	}
}

// B10: tokens are 128 random bits; a million made in parallel differ.
func TestB10TokensDiffer(t *testing.T) {
	const workers, each = 8, 125_000
	made := make(chan []lease.Token, workers)
	for range workers {
		go func() {
			all := make([]lease.Token, each)
			for i := range all {
				all[i] = lease.NewToken()
			}
			made <- all
		}()
	}
	seen := make(map[lease.Token]bool, workers*each)
	for range workers {
		for _, token := range <-made {
			if seen[token] || len(token) != 32 {
				t.Fatalf("token %q again, or not 128 bits", string(token))
			}
			seen[token] = true
		}
	}
}
