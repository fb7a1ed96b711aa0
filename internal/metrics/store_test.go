package metrics

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/lease/leasetest"
)

// answers is a store that gives one answer to everything.
type answers struct{ err error }

func (a answers) Acquire(context.Context, lease.Request) (lease.Grant, error) {
	return lease.Grant{Fence: 7}, a.err
}

func (a answers) Extend(context.Context, lease.Grant, lease.Extension) (lease.Extended, error) {
	return lease.Extended{Left: 7}, a.err
}
func (a answers) Release(context.Context, lease.Claim) (bool, error) { return true, a.err }
func (a answers) Inspect(context.Context, string) (lease.Info, error) {
	return lease.Info{Fence: 7}, a.err
}

type answersWaker struct{ answers }

func (a answersWaker) Join(context.Context, string) (lease.Inbox, error) {
	return lease.Inbox{Waiter: "7"}, a.err
}

type kinded string

func (k kinded) Error() string     { return "redis: " + string(k) }
func (k kinded) ErrorKind() string { return string(k) }

// A wrapped store wakes its waiters if, and only if, it did so before: else a candidate
// would wait for messages that nobody sends, or poll where it need not.
func TestStoreKeepsWaker(t *testing.T) {
	r := New("")
	if _, ok := r.Store(answersWaker{}).(lease.Waker); !ok {
		t.Error("a Waker is none any more")
	}
	if _, ok := r.Store(answers{}).(lease.Waker); ok {
		t.Error("a Waker came out of nothing")
	}
	if _, ok := r.Store(leasetest.NewMemory(leasetest.Config{})).(lease.Waker); !ok {
		t.Error("a Waker is none any more")
	}
}

// Answers pass through as they are, and are counted as what they are.
func TestStoreCounts(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	const (
		timed   = true
		untimed = false
	)
	for _, tt := range []struct {
		name  string
		ctx   context.Context
		err   error
		want  string // label and value
		timed bool
	}{
		{"granted", t.Context(), nil, "", timed},
		{"held", t.Context(), &lease.HeldError{}, `verdict="held"`, timed},
		{"lost", t.Context(), fmt.Errorf("extend: %w", lease.ErrLost), `verdict="lost"`, timed},
		{"burned", t.Context(), lease.ErrBurned, `verdict="burned"`, timed},
		{"kind", t.Context(), lease.ErrKind, `verdict="kind"`, timed},
		{"fence", t.Context(), lease.ErrFence, `verdict="fence"`, timed},
		{"invalid", t.Context(), lease.ErrInvalid, `verdict="invalid"`, timed},
		{"a verdict that came as we left", canceled, lease.ErrLost, `verdict="lost"`, timed},
		{"we left", canceled, kinded("closed"), `kind="canceled"`, untimed},
		{"not yet", t.Context(), &lease.WaitError{}, `kind="wait"`, untimed},
		{"the store's word", t.Context(), fmt.Errorf("x: %w", kinded("oom")), `kind="oom"`, timed},
		{"the store's word on a deadline", late, kinded("refused"), `kind="refused"`, timed},
		{"deadline", late, context.DeadlineExceeded, `kind="timeout"`, timed},
		{"deadline of a socket", late, os.ErrDeadlineExceeded, `kind="timeout"`, timed},
		{"anything else", t.Context(), errors.New("x"), `kind="other"`, timed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := New("")
			s := r.Store(answersWaker{answers{tt.err}})
			g, err := s.Acquire(tt.ctx, lease.Request{})
			same(t, "acquire", g.Fence == 7, err, tt.err)
			ext, err := s.Extend(tt.ctx, g, lease.Extension{})
			same(t, "extend", ext.Left == 7, err, tt.err)
			released, err := s.Release(tt.ctx, lease.Claim{})
			same(t, "release", released, err, tt.err)
			info, err := s.Inspect(tt.ctx, "")
			same(t, "inspect", info.Fence == 7, err, tt.err)
			inbox, err := s.(lease.Waker).Join(tt.ctx, "")
			same(t, "join", inbox.Waiter == "7", err, tt.err)

			got := scrape(t, r)
			for _, op := range []string{"acquire", "extend", "release", "inspect", "join"} {
				n := 0
				if tt.timed {
					n = 1
				}
				if want := fmt.Sprintf("soloist_store_seconds_count{op=%q} %d\n", op, n); !strings.Contains(got, want) {
					t.Errorf("%s is missing from\n%s", want, got)
				}
				var want string
				switch label, _, _ := strings.Cut(tt.want, "="); label {
				case "verdict":
					want = fmt.Sprintf("soloist_store_refusals_total{op=%q,%s} 1\n", op, tt.want)
				case "kind":
					want = fmt.Sprintf("soloist_store_errors_total{%s,op=%q} 1\n", tt.want, op)
				}
				if !strings.Contains(got, want) {
					t.Errorf("%s is missing from\n%s", want, got)
				}
			}
			if tt.want == "" && strings.Contains(got, "soloist_store_errors_total{") ||
				!strings.HasPrefix(tt.want, "verdict") && strings.Contains(got, "soloist_store_refusals_total{") {
				t.Errorf("counted as what it is not:\n%s", got)
			}
		})
	}
}

func same(t *testing.T, op string, value bool, got, want error) {
	t.Helper()
	if !value || got != want { //nolint:errorlint // the very same error must come through
		t.Errorf("%s: the answer was changed: %v", op, got)
	}
}

// What is observed costs a renewal less than a microsecond or two.
func BenchmarkStore(b *testing.B) {
	s := New("").Store(answers{})
	b.ReportAllocs()
	for b.Loop() {
		_, _ = s.Extend(b.Context(), lease.Grant{}, lease.Extension{})
	}
}
