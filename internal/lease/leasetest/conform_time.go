package leasetest

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
)

var times = []contract{
	{"a lease runs out, and not before its time", func(b *bench) {
		r := b.plain()
		r.TTL = b.suite.Short
		before := time.Now()
		g := b.grant(r)
		next := b.plain()
		b.until("the lease runs out", func() bool {
			_, err := b.store.Acquire(b.Context(), next)
			if err != nil && !errors.Is(err, lease.ErrHeld) {
				b.Fatalf("Acquire: %v", err)
			}
			return err == nil
		})
		if took := time.Since(before); took < r.TTL {
			b.Errorf("taken over after %v, of %v", took, r.TTL)
		}
		b.lost(g)
	}},
	{"what is left of a lease plus 1 ms is enough to wait", func(b *bench) {
		for range 10 {
			r := b.plain()
			r.TTL = b.suite.Short
			b.grant(r)
			next := b.plain()
			_, err := b.store.Acquire(b.Context(), next)
			var held *lease.HeldError
			if errors.As(err, &held) { // not on a machine so slow that it has run out
				<-time.After(held.Left + time.Millisecond)
				b.grant(next)
			}
			b.release(next.Claim, true)
		}
	}},
	{"an extension lasts from when it was asked", func(b *bench) {
		for lost := true; lost; {
			r := b.plain()
			r.TTL = b.suite.Short
			g := b.grant(r)
			<-time.After(r.TTL / 2)
			before := time.Now()
			_, err := b.store.Extend(b.Context(), g, lease.Extension{TTL: r.TTL})
			b.runOut()
			if lost = errors.Is(err, lease.ErrLost); lost { // a slow machine: once more
				continue
			}
			if took := time.Since(before); err != nil || took < r.TTL {
				b.Errorf("extended: %v; ran out after %v, of %v", err, took, r.TTL)
			}
		}
	}},
	{"an extension of what has run out is lost, and creates nothing (B6)", func(b *bench) {
		r := b.plain()
		r.TTL = b.suite.Short
		g := b.grant(r)
		b.runOut()
		b.lost(g)
		if held := b.inspect().Holders; len(held) != 0 {
			b.Errorf("held by %+v", held)
		}
		b.release(g.Claim, false)
	}},
	{"a crowd that competes for one lock holds it one at a time, with rising fences", func(b *bench) {
		b.compete(0, b.suite.Crowd, 3)
	}},
	withSlots("a crowd that competes for 3 slots holds each one at a time, with unique fences", func(b *bench) {
		b.compete(3, b.suite.Crowd, 3)
	}),
}

// compete lets n goroutines hold a slot a few rounds each.
func (b *bench) compete(slots, n, rounds int) {
	var (
		wg      sync.WaitGroup
		holding = make([]atomic.Int32, max(slots, 1))
		mu      sync.Mutex
		fences  = make([][]uint64, max(slots, 1)) // by slot, in the order of holding
	)
	stores := []lease.Store{b.store, b.open(), b.open()}
	round := func(s lease.Store) bool {
		r := b.slots(slots)
		for tries := 0; ; tries++ {
			g, err := s.Acquire(b.Context(), r)
			if errors.Is(err, lease.ErrHeld) {
				<-time.After(time.Duration(1+tries%5) * time.Millisecond)
				continue
			}
			if err != nil {
				b.Errorf("Acquire: %v", err)
				return false
			}
			if holding[g.Slot].Add(1) != 1 {
				b.Errorf("slot %d is held twice", g.Slot)
			}
			mu.Lock()
			fences[g.Slot] = append(fences[g.Slot], g.Fence)
			mu.Unlock()
			if _, err := s.Extend(b.Context(), g, lease.Extension{TTL: long}); err != nil {
				b.Errorf("Extend: %v", err)
			}
			holding[g.Slot].Add(-1)
			if released, err := s.Release(b.Context(), g.Claim); err != nil || !released {
				b.Errorf("Release: %v, %v", released, err)
				return false
			}
			return true
		}
	}
	for i := range n {
		wg.Go(func() {
			for range rounds {
				if !round(stores[i%len(stores)]) {
					return
				}
			}
		})
	}
	wg.Wait()
	var all []uint64
	for slot, f := range fences {
		if !slices.IsSorted(f) {
			b.Errorf("slot %d: fences do not rise: %v", slot, f)
		}
		all = append(all, f...)
	}
	slices.Sort(all)
	if len(slices.Compact(slices.Clone(all))) != n*rounds {
		b.Errorf("%d grants, want %d with a fence each: %v", len(all), n*rounds, all)
	}
}
