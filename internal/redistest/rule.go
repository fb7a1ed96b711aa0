package redistest

import (
	"fmt"
	"sync"
	"time"
)

// Always lets a rule apply without limit.
const Always = 0

// waitLimit is how long Wait waits, on a busy machine.
const waitLimit = 20 * time.Second

// A Rule applies an action to the commands that match. Its methods are safe for
// concurrent use.
type Rule struct {
	p      *Proxy
	match  Matcher
	action Action

	mu          sync.Mutex // guards what follows
	left        int        // how often it may still apply; negative: without limit
	removed     bool
	fired, done int
	isFired     chan struct{} // closed when fired becomes 1
	isDone      chan struct{} // closed when done becomes 1
	changed     chan struct{} // closed and made anew when a count changes
}

// On makes the proxy apply an action to the next requests that match, at most
// times (or Always) of them. A nil matcher matches all. A request is matched when
// the proxy has read it, against the rules in the order of their making; the
// first that matches and is not used up applies, alone.
func (p *Proxy) On(match Matcher, action Action, times int) *Rule {
	p.t.Helper()
	return p.addRule("On", &p.rules, match, action, times)
}

// OnPush is On for messages that nobody asked for: of subscriptions, as "message",
// channel, payload, and of client-side caching, as "invalidate", keys. Confirmations
// answer a request and are not among them. Of the actions, those that act on an
// answer are possible, and Drop.
func (p *Proxy) OnPush(match Matcher, action Action, times int) *Rule {
	p.t.Helper()
	return p.addRule("OnPush", &p.pushRules, match, action, times)
}

func (p *Proxy) addRule(method string, to *[]*Rule, match Matcher, action Action, times int) *Rule {
	p.t.Helper()
	if only := action.kind.onlyFor(); only != "" && only != method {
		p.t.Fatalf("redistest: %s cannot be used with %s", action.kind, method)
	}
	if times == Always {
		times = -1
	}
	r := &Rule{
		p: p, match: match, action: action, left: times,
		isFired: make(chan struct{}), isDone: make(chan struct{}), changed: make(chan struct{}),
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	*to = append(*to, r)
	return r
}

// claim returns the rule that applies to a command, and uses it up by one. It is
// nil if there is none.
func (p *Proxy) claim(rules *[]*Rule, cmd Command) *Rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range *rules {
		if r.usable() && (r.match == nil || r.match(cmd)) {
			r.use(1)
			return r
		}
	}
	return nil
}

func (r *Rule) usable() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left != 0 && !r.removed
}

// use takes n uses from the rule, or gives -n back.
func (r *Rule) use(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left >= 0 {
		r.left -= n
	}
}

// Remove makes the rule apply no more. What it has begun goes on.
func (r *Rule) Remove() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.removed = true
}

// Fired returns a channel that is closed when the rule has struck for the first
// time. Each action says what that is; where it does not, all is over by then.
func (r *Rule) Fired() <-chan struct{} { return r.isFired }

// Done returns a channel that is closed when what the rule did is over for the
// first time: a delayed request was answered by the server, and a delayed answer
// passed on, or the connection has ended before.
func (r *Rule) Done() <-chan struct{} { return r.isDone }

// Count returns how often the rule has fired.
func (r *Rule) Count() int {
	fired, _, _ := r.counts()
	return fired
}

// Wait blocks until the rule has fired n times. It ends the test after 20 s.
func (r *Rule) Wait(n int) {
	r.p.t.Helper()
	r.wait(n, "fired", func(fired, _ int) int { return fired })
}

// WaitDone blocks until what the rule did is over for the nth time. It ends the
// test after 20 s.
func (r *Rule) WaitDone(n int) {
	r.p.t.Helper()
	r.wait(n, "was done", func(_, done int) int { return done })
}

func (r *Rule) wait(n int, verb string, which func(fired, done int) int) {
	r.p.t.Helper()
	limit := time.NewTimer(waitLimit)
	defer limit.Stop()
	for {
		fired, done, changed := r.counts()
		if which(fired, done) >= n {
			return
		}
		select {
		case <-changed:
		case <-limit.C:
			r.p.t.Fatalf("redistest: rule %s %s %d times in %s, not %d", r.action.kind, verb, which(fired, done), waitLimit, n)
		}
	}
}

func (r *Rule) counts() (fired, done int, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fired, r.done, r.changed
}

// count adds to the rule's counts.
func (r *Rule) count(fired, done int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fired == 0 && fired > 0 {
		close(r.isFired)
	}
	if r.done == 0 && done > 0 {
		close(r.isDone)
	}
	r.fired += fired
	r.done += done
	close(r.changed)
	r.changed = make(chan struct{})
}

// String returns what the rule does and has done.
func (r *Rule) String() string {
	fired, done, _ := r.counts()
	return fmt.Sprintf("%s: fired %d times, done %d times", r.action.kind, fired, done)
}
