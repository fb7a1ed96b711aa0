package redislease

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/lease/leasetest"
	"github.com/soloist-dev/soloist/internal/redistest"
)

var (
	differentialSeed  = flag.Uint64("differential.seed", 0, "run TestDifferential with this seed alone")
	differentialSeeds = flag.Uint64("differential.seeds", 100, "how many seeds TestDifferential runs")
)

// TestDifferential does the same random operations on a real Redis and on
// leasetest.Memory, and compares answers, messages and what is kept in the end. Times
// need agree only roughly (see roughly), fences only in their order.
func TestDifferential(t *testing.T) {
	redistest.CheckLeaks(t)
	d := newDifferential(t)
	if *differentialSeed != 0 {
		d.run(t, *differentialSeed)
		return
	}
	for seed := range *differentialSeeds {
		d.run(t, seed+1)
		if t.Failed() {
			t.Fatalf("again: go test -run TestDifferential ./internal/lease/redislease -differential.seed=%d", seed+1)
		}
	}
}

const (
	diffClaim = time.Hour
	diffOps   = 80
	noChannel = "redistest:none" // keeps the subscription alive
	// farBelow and farAbove are far from what time adds to a fence in a run.
	farBelow = 1_000_000_000_000
	farAbove = 10_000_000_000
)

// differential holds what the runs share.
type differential struct {
	srv   *redistest.Server
	store *Store
	sub   *redis.PubSub
}

func newDifferential(t *testing.T) *differential {
	srv := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: srv.Socket(), Protocol: 2, DisableIdentity: true})
	sub := client.Subscribe(t.Context(), noChannel)
	t.Cleanup(func() { _, _ = sub.Close(), client.Close() })
	return &differential{srv: srv, sub: sub, store: open(t, "unix://"+srv.Socket(), func(o *Options) {
		o.Claim = diffClaim
	})}
}

// twins is one run: the same history on both.
type twins struct {
	*differential
	*testing.T
	ctx    context.Context
	rand   *rand.Rand
	mem    *leasetest.Memory
	procs  map[string]*leasetest.Process
	told   []leasetest.Message // by the Memory, in the operation under way
	listen map[string]bool     // by instance
	tokens []lease.Token
	grants map[lease.Token]lease.Grant // what Redis granted last
	fences map[uint64]uint64           // Redis's to Memory's
	top    [2]uint64                   // highest fence seen: Redis, Memory
	log    []string
}

func (d *differential) run(t *testing.T, seed uint64) {
	d.srv.Must("FLUSHALL")
	tw := &twins{
		differential: d, T: t, ctx: t.Context(),
		rand:   rand.New(rand.NewPCG(seed, seed)),
		procs:  map[string]*leasetest.Process{},
		listen: map[string]bool{},
		grants: map[lease.Token]lease.Grant{},
		fences: map[uint64]uint64{0: 0},
	}
	tw.mem = leasetest.NewMemory(leasetest.Config{Claim: diffClaim, Lease: leasetest.Lease, Tap: func(m leasetest.Message) {
		if instance, _, _ := strings.Cut(m.Waiter, "#"); tw.listen[instance] {
			tw.told = append(tw.told, m)
		}
	}})
	for _, instance := range []string{"a", "b", "c", "d"} {
		tw.procs[instance] = tw.mem.NewProcess(instance)
		tw.procs[instance].Disconnect()
		if tw.rand.IntN(4) > 0 {
			tw.subscribe(instance, true)
		}
	}
	for range 12 {
		tw.tokens = append(tw.tokens, lease.NewToken())
	}
	for range diffOps {
		tw.step()
		tw.messages()
		if t.Failed() {
			break
		}
	}
	if !t.Failed() {
		tw.dump("plain")
		tw.dump("slots")
		tw.order()
		expires(t, d.srv)
	}
	for _, instance := range []string{"a", "b", "c", "d"} {
		tw.subscribe(instance, false)
	}
	if t.Failed() {
		t.Logf("seed %d:\n%s", seed, strings.Join(tw.log, "\n"))
	}
}

func (tw *twins) step() {
	switch n := tw.rand.IntN(100); {
	case n < 50:
		tw.acquire()
	case n < 62:
		tw.extend()
	case n < 80:
		tw.release()
	case n < 86:
		lock, key := tw.lockAndSlots()
		tw.drop(lock, []string{"lk", "lk:0", "lk:1", "lk:2", "lk:3"}[min(tw.rand.IntN(5)*min(key, 1), 4)])
	case n < 88:
		lock, _ := tw.lockAndSlots()
		tw.drop(lock, []string{"fn", "q"}[tw.rand.IntN(2)])
	case n < 94:
		instance := string(rune('a' + tw.rand.IntN(4)))
		tw.subscribe(instance, !tw.listen[instance])
	case n < 96:
		tw.revoke()
	default:
		tw.inspect()
	}
}

func (tw *twins) logf(format string, args ...any) {
	tw.log = append(tw.log, fmt.Sprintf(format, args...))
}
