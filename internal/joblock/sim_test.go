package joblock

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/lease/leasetest"
)

var seeds = flag.Int("sim.seeds", 12, "how many simulations to run")

// TestSimulation runs sidecars and their clients through a minute of faults, and judges what
// the clients were told by what the server did.
func TestSimulation(t *testing.T) {
	seen := map[string]uint64{}
	for seed := range uint64(*seeds) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { simulate(t, seed, seen) })
		})
	}
	for _, what := range []string{
		"granted", "held", "done", "released", "gone", "unknown", "shared", "handed over",
		"release held", "release unknown", "release lost", "release unanswered", "end lost", "end expired", "end limit",
	} {
		if seen[what] == 0 {
			t.Errorf("not once %q in %d simulations: %v", what, *seeds, seen)
		}
	}
}

// world is a server with its sidecars, and what was seen at the server.
type world struct {
	*testing.T
	server *leasetest.Memory
	clocks []*leasetest.Clock // the sidecars', and last the server's
	sites  []*site

	mu     sync.Mutex // held while the server grants
	latest map[string]*grant
	holds  map[*hold]bool // that no client has asked to release
	seen   map[string]uint64
}

type grant struct {
	lease.Grant
	at    time.Time // by the server's clock
	first *hold     // of those that share it
}

// hold is what one client has of a lease.
type hold struct {
	Lease
	ask Ask
	at  string
}

// witness is a sidecar's way to the server, and judges what is granted: its fence is the
// lock's highest, and nobody believes in an earlier lease of the slot, or wants it to rest.
type witness struct {
	*leasetest.Process
	*world
}

func (w witness) Acquire(ctx context.Context, r lease.Request) (lease.Grant, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	got, err := w.Process.Acquire(ctx, r)
	at, g := fmt.Sprint(r.Lock, "/", got.Slot), &grant{Grant: got, at: w.clocks[3].Time()}
	last := w.latest[at]
	if err != nil || last != nil && last.Fence == g.Fence { // asked again
		return got, err
	}
	for _, other := range w.latest {
		if other.Lock == g.Lock && other.Fence >= g.Fence {
			w.Errorf("%s granted with fence %d after %d", at, g.Fence, other.Fence)
		}
	}
	for h := range w.holds {
		if h.at == at && h.Left() > 0 {
			w.Errorf("%s granted with fence %d while one believes in %d", at, g.Fence, h.Fence)
		}
	}
	if last != nil && last.first != nil && g.at.Before(last.at.Add(last.first.ask.AtLeast)) {
		w.Errorf("%s granted %v after a grant for at least %v", at, g.at.Sub(last.at), last.first.ask.AtLeast)
	}
	w.latest[at] = g
	return got, nil
}

// given judges what a client was told is its own: nobody else's but its owner's, and of no
// run that was done before.
func (w *world) given(a Ask, got Lease) *hold {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := &hold{got, a, fmt.Sprint(a.Lock, "/", got.Slot)}
	w.holds[h] = true
	if run, _ := w.server.Done(w.Context(), a.Lock, a.Once); run != nil && run.Fence < h.Fence {
		w.Errorf("%s granted with fence %d, and was done with %d", a.Once, h.Fence, run.Fence)
	}
	g := w.latest[h.at]
	switch {
	case g.Fence != h.Fence: // it has ended, or believe will complain
	case g.first == nil:
		g.first = h
	case g.first.of != h.of || g.first.ask.Owner != a.Owner || !g.first.ask.Reenter || !a.Reenter:
		w.Errorf("%s with fence %d is shared by %+v and %+v", h.at, h.Fence, g.first.ask, a)
	default:
		w.seen["shared"]++
	}
	return h
}

// believe judges a belief: the lease outlasts it by what its timing spares.
func (w *world) believe(h *hold, valid time.Duration) {
	spare := h.ask.Lease - lease.JobTiming(h.ask.Lease).Belief() - h.ask.Lease/50 // clocks differ
	for _, l := range w.server.State(h.Lock).Leases {
		if l.Token == h.Token.lease && l.Fence == h.Fence && l.Left >= valid+spare {
			return
		}
	}
	if valid > 0 {
		w.Errorf("%s with fence %d is believed in for %v, and has not %v left", h.at, h.Fence, valid, valid+spare)
	}
}

type client struct {
	*world
	*rand.Rand
	home *site
}

func (c *client) upTo(d time.Duration) time.Duration {
	return time.Duration(c.Int64N(int64(d/tick))) * tick
}

func (c *client) any() *site { return []*site{c.home, c.home, c.sites[c.IntN(3)]}[c.IntN(3)] }

func asks() []Ask {
	return []Ask{
		{Lock: "plain", Lease: 7 * time.Second, AtLeast: 2 * time.Second},
		{Lock: "slots", Lease: 3 * time.Second, Slots: 2},
		{Lock: "runs", Lease: 7 * time.Second, AtLeast: 4 * time.Second, Once: fmt.Sprint("run-", time.Now().Unix()/15)},
	}
}

// work asks with more or less patience, a request twice; holds; and dies or releases.
func (c *client) work(ctx context.Context) {
	a := asks()[c.IntN(3)]
	a.Owner, a.Reenter = fmt.Sprint(a.Once, c.IntN(2)), c.IntN(2) > 0 // who shares is at the same run
	a.AtMost, a.Wait = a.Lease+c.upTo(2*a.Lease), max(0, c.upTo(24*time.Second)-12*time.Second)
	patient, cancel := context.WithTimeout(ctx, c.upTo(20*time.Second))
	defer cancel()
	var again Lease
	var wg sync.WaitGroup
	if pause := c.upTo(3 * time.Second); c.IntN(2) > 0 {
		a.Request = fmt.Sprint("r", c.Uint64())
		wg.Go(func() {
			time.Sleep(pause)
			again, _ = c.home.Acquire(ctx, a)
		})
	}
	got, _ := c.home.Acquire(patient, a)
	if wg.Wait(); got.Fence == 0 {
		got = again
	} else if again.Fence > 0 && again.Token != got.Token {
		c.Errorf("one request granted with fences %d and %d: %+v", got.Fence, again.Fence, a)
	}
	if got.Fence == 0 {
		return
	}
	h := c.given(a, got)
	for time.Sleep(c.upTo(6 * time.Second)); c.IntN(3) == 0; time.Sleep(c.upTo(6 * time.Second)) {
		if renewed, err := c.any().Renew(ctx, h.Lock, h.Token); err == nil {
			c.believe(h, renewed.Valid)
		}
	}
	if c.IntN(5) > 0 {
		c.release(ctx, h)
	}
}

// release asks a sidecar, and perhaps again, there or elsewhere.
func (c *client) release(ctx context.Context, h *hold) {
	done := h.ask.Once != "" && c.IntN(3) > 0
	c.mu.Lock()
	delete(c.holds, h)
	valid, mine := h.Left() > 0, c.latest[h.at].Fence == h.Fence
	c.mu.Unlock()
	for n := range 1 + c.IntN(3) {
		s := c.any()
		got, err := s.Release(ctx, h.Lock, h.Token, done)
		run, _ := c.server.Done(c.Context(), h.Lock, h.ask.Once)
		switch {
		case h.ask.Reenter && s != c.home: // which does not know it
		case h.ask.Reenter && !valid: // not judged: what the others of its owner do decides
		case err == nil && !got.Held && (valid && n == 0 || got.Count == 0):
			c.Errorf("%s with fence %d is neither held nor lost: %+v", h.at, h.Fence, got)
		case err == nil && got.Held && !mine:
			c.Errorf("%s with fence %d was held to the end, and another had it before", h.at, h.Fence)
		case err != nil && valid && n == 0 && (s == c.home || errors.Is(err, lease.ErrLost)):
			c.Errorf("%s with fence %d was valid until its release, which says %v", h.at, h.Fence, err)
		case err == nil && done && !got.Unknown && got.Count == 0 && (run == nil || run.Fence != h.Fence):
			c.Errorf("%s done with fence %d, and recorded as %+v", h.ask.Once, h.Fence, run)
		}
		time.Sleep(c.upTo(3 * time.Second))
	}
}

func simulate(t *testing.T, seed uint64, seen map[string]uint64) {
	rnd := rand.New(rand.NewPCG(seed, 0))
	w := &world{T: t, latest: map[string]*grant{}, holds: map[*hold]bool{}, seen: seen}
	for range 4 { // within the promise: every rate within 1 % of every other
		w.clocks = append(w.clocks, leasetest.NewClock(0.995+rnd.Float64()/100))
	}
	told := map[bool]uint64{} // whether to go
	w.server = leasetest.NewMemory(leasetest.Config{Clock: w.clocks[3].Time, Tap: func(m leasetest.Message) { told[m.Go]++ }})
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range 12 {
		if i < 3 {
			s := &site{link: leasetest.NewLink(witness{w.server.NewProcess(""), w})}
			s.Locks = New(Config{Store: s.link, Clock: w.clocks[i].Now})
			w.sites = append(w.sites, s)
		}
		c := &client{w, rand.New(rand.NewPCG(seed, uint64(i)+1)), w.sites[i%3]}
		wg.Go(func() {
			for ctx.Err() == nil {
				time.Sleep(c.upTo(4 * time.Second))
				c.work(ctx)
			}
		})
	}
	for range 40 {
		w.trouble(rnd, rnd.IntN(3), float64(rnd.IntN(2))/10)
		for range 10 {
			time.Sleep(time.Duration(rnd.IntN(300)) * tick)
			w.mu.Lock()
			for h := range w.holds {
				w.believe(h, h.Left())
			}
			w.mu.Unlock()
		}
	}
	stop()
	wg.Wait()
	for i := range w.sites {
		w.trouble(rnd, i, 0)
	}
	time.Sleep(30 * time.Second) // for as long as any AtMost, and for what is late
	w.settled()
	seen["handed over"] += told[true]
}

// trouble changes what is wrong with a sidecar; p is the share of each fault.
func (w *world) trouble(rnd *rand.Rand, i int, p float64) {
	w.sites[i].link.SetDown(rnd.Float64() < 4*p)
	c := leasetest.Chaos{Seed: rnd.Uint64(), Lost: p, Cut: p, Mute: p, Slow: 4 * p, MaxDelay: 2 * time.Second, Twice: p}
	w.sites[i].link.SetFates(c.Fate)
	w.clocks[i].StepWall(time.Duration(rnd.IntN(1000)-500) * tick)
}

// settled judges what is left when all clients have gone and all is well: nothing.
func (w *world) settled() {
	for _, a := range asks() {
		if left := w.server.State(a.Lock).Leases; len(left) > 0 {
			w.Errorf("%s is still held: %+v", a.Lock, left)
		}
		a.Wait = 5 * time.Second // a waiter that left without a word costs 100 ms
		for _, s := range w.sites {
			got, err := s.Acquire(w.Context(), a)
			if out, failed := s.Release(w.Context(), a.Lock, got.Token, false); err != nil || failed != nil || out != held {
				w.Errorf("%s is not to be had though all is well: %v, %+v, %v", a.Lock, err, out, failed)
			}
		}
		if line := w.server.State(a.Lock).Line; len(line) > 0 {
			w.Errorf("%q still wait for %s", line, a.Lock)
		}
	}
	for _, s := range w.sites {
		all, st := s.List(), &s.stats
		if len(all)+len(s.owners)+len(s.requests) > 0 {
			w.Errorf("a sidecar keeps %d leases, %d owners, %d requests", len(all), len(s.owners), len(s.requests))
		}
		for what, counts := range map[string]map[string]uint64{"": st.Acquires, "release ": st.Releases, "end ": st.Lost} {
			for word, n := range counts {
				w.seen[what+word] += n
			}
		}
		s.Close(w.Context(), 0)
		s.link.Close()
	}
}
