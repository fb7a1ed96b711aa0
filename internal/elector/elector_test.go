package elector_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-dev/soloist/internal/elector"
	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/lease/leasetest"
)

func TestOneLeads(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		a, b := start(t, server, "a"), start(t, server, "b")
		v := a.mustSay(elector.Leader, elector.Acquired)
		if v.Holder != "a" || v.ValidFor != timing.Belief() || v.Fence == 0 {
			t.Errorf("%+v", v)
		}
		if v := b.mustSay(elector.Standby, elector.HeldByPeer); v.Holder != "a" || v.ValidFor != 0 {
			t.Errorf("%+v", v)
		}
	})
}

func TestCrash(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		a, b := start(t, server, "a"), start(t, server, "b")
		old := a.View()
		time.Sleep(10 * time.Second)
		a.crash()
		took := b.await(elector.Leader, elector.Acquired, timing.LeaseDuration+10*time.Millisecond)
		if took < timing.LeaseDuration-timing.RetryPeriod {
			t.Errorf("took over after %v: before the lease's end", took)
		}
		if v := a.View(); v.Leading || v.Version <= old.Version {
			t.Errorf("the cut-off leader: %+v", v)
		}
		if b.View().Fence <= old.Fence {
			t.Errorf("fence %d after %d", b.View().Fence, old.Fence)
		}
		if l := a.losses(); !slices.Equal(l, []elector.Reason{elector.Expired}) {
			t.Errorf("OnLost heard %v", l)
		}
	})
}

func TestLost(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		a := start(t, server, "a")
		fence := a.View().Fence
		server.FlushAll()
		time.Sleep(timing.RetryPeriod + time.Millisecond)
		// Nobody else is there, so it leads again at once, under a higher fence.
		if v := a.mustSay(elector.Leader, elector.Acquired); v.Fence <= fence {
			t.Errorf("fence %d after %d", v.Fence, fence)
		}
		if l := a.losses(); !slices.Equal(l, []elector.Reason{elector.Lost}) {
			t.Errorf("OnLost heard %v", l)
		}
	})
}

// A planned stop: belief false before the release, the next leads at once.
func TestStop(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		a, b := start(t, server, "a"), start(t, server, "b")
		a.link.SetFates(func(c leasetest.Call) leasetest.Fate {
			if c.Op == "release" && a.View().Leading {
				t.Error("released while leading")
			}
			return leasetest.Fate{}
		})
		a.stop()
		<-a.done
		a.mustSay(elector.Standby, elector.Stopped)
		b.mustSay(elector.Leader, elector.Acquired)
		if l := a.losses(); len(l) != 0 {
			t.Errorf("OnLost heard %v of a planned stop", l)
		}
	})
}

// An app that falls ill loses the term at once, its lease when what it was told has run
// out; it does not campaign until it is well.
func TestGate(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		a, b := start(t, server, "a"), start(t, server, "b")
		b.gate.set(elector.Silent)
		b.mustSay(elector.Standby, elector.Silent)
		from := time.Now()
		handedOut := a.View().ValidFor
		a.gate.set(elector.Unhealthy)
		if v := a.mustSay(elector.Standby, elector.Unhealthy); !v.HandingOver {
			t.Error("does not keep the lease")
		}
		if l := a.losses(); !slices.Equal(l, []elector.Reason{elector.Unhealthy}) {
			t.Errorf("OnLost heard %v", l)
		}
		c := start(t, server, "c")
		c.await(elector.Leader, elector.Acquired, timing.LeaseDuration)
		if took := time.Since(from); took < handedOut {
			t.Errorf("c leads after %v, while a was told %v", took, handedOut)
		}
		c.stop()
		<-c.done
		time.Sleep(time.Minute) // nobody is well, so nobody leads
		a.mustSay(elector.Standby, elector.Unhealthy)
		b.mustSay(elector.Standby, elector.Silent)
		b.gate.set("")
		b.mustSay(elector.Leader, elector.Acquired)
	})
}

// Unknown is not loss: a jump of the wall clock costs one renewal, and says so in order.
func TestClockJump(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		a := start(t, server, "a")
		before := a.View()
		a.link.SetDown(true)
		a.clock.StepWall(time.Hour)
		during := a.mustSay(elector.Unknown, elector.Unverified)
		a.link.SetDown(false)
		time.Sleep(2 * timing.RetryPeriod)
		after := a.mustSay(elector.Leader, elector.Verified)
		if !(before.Version < during.Version && during.Version < after.Version) || after.Fence != before.Fence {
			t.Errorf("versions %d, %d, %d; fences %d, %d", before.Version, during.Version, after.Version, before.Fence, after.Fence)
		}
		if l := a.losses(); len(l) != 0 {
			t.Errorf("OnLost heard %v", l)
		}
	})
}

// What a reader computes from an old snapshot, the writer says next: versions never go back.
func TestVersionsRise(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		a := start(t, server, "a")
		last := a.View()
		a.crash()
		for range 8000 {
			time.Sleep(time.Millisecond)
			v := a.View()
			same := v.Version == last.Version
			if v.Version < last.Version || same && (v.Leading != last.Leading || v.Phase != last.Phase) {
				t.Fatalf("version %d (%s) after %d (%s)", v.Version, v.Phase, last.Version, last.Phase)
			}
			last = v
		}
	})
}

// A slow reader gets the newest state, and nobody waits for it.
func TestSubscribersGetTheLatest(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		a := start(t, server, "a")
		sub := a.Subscribe()
		defer sub.Close()
		time.Sleep(time.Minute)
		server.FlushAll()
		time.Sleep(time.Minute)
		if s := <-sub.C; s != a.State() {
			t.Errorf("received version %d, newest is %d", s.Version, a.State().Version)
		}
	})
}

func TestOverdue(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		a, b := start(t, server, "a"), start(t, server, "b")
		for i := range 600 {
			if i%60 == 0 {
				a.link.SetDown(i%120 == 0) // a store out of reach makes nothing overdue
			}
			time.Sleep(100 * time.Millisecond)
			if a.Overdue() > 0 || b.Overdue() > 0 {
				t.Fatalf("overdue by %v, %v", a.Overdue(), b.Overdue())
			}
		}
		let := make(chan struct{})
		c := start(t, server, "c", func(c *elector.Config) { c.Store = stuck{c.Store, let} })
		t.Cleanup(func() { close(let) }) // before c is stopped
		time.Sleep(time.Minute)
		if c.Overdue() == 0 {
			t.Error("a store that never returns makes nothing overdue")
		}
	})
}

// stuck does not answer before it is let, whatever its context says.
type stuck struct {
	lease.Store
	let chan struct{}
}

func (s stuck) Acquire(context.Context, lease.Request) (lease.Grant, error) {
	<-s.let
	return lease.Grant{}, context.Canceled
}

// B42: whatever has failed, and however often, somebody leads soon after it is mended.
func TestB42CampaignsForEver(t *testing.T) {
	for seed := range uint64(20) {
		bubble(t, func(t *testing.T, server *leasetest.Memory) {
			pods := []*pod{start(t, server, "a"), start(t, server, "b"), start(t, server, "c")}
			for i, p := range pods {
				p.link.SetFates(leasetest.Chaos{
					Seed: seed*10 + uint64(i), Lost: .3, Refused: .3, Cut: .2, Slow: .3, MaxDelay: 2 * time.Second,
				}.Fate)
			}
			for range 200 {
				time.Sleep(137 * time.Millisecond)
				synctest.Wait()
				var leaders int
				for _, p := range pods {
					if p.View().Leading {
						leaders++
					}
				}
				if leaders > 1 {
					t.Fatalf("seed %d: %d leaders", seed, leaders)
				}
			}
			for _, p := range pods {
				p.link.SetFates(func(leasetest.Call) leasetest.Fate { return leasetest.Fate{} })
			}
			for from := time.Now(); ; time.Sleep(time.Millisecond) {
				if slices.ContainsFunc(pods, func(p *pod) bool { return p.View().Leading }) {
					break
				}
				if time.Since(from) > timing.LeaseDuration+time.Second {
					t.Fatalf("seed %d: nobody leads", seed)
				}
			}
		})
	}
}

// A process that stood still finds at once that its time is up and that it is to stop, in
// any order: its term ended when its time was up, and that was a loss.
func TestATermEndsWhenItsTimeIsUp(t *testing.T) {
	for name, end := range map[string]func(p *pod){
		"stop":      func(p *pod) { p.stop() },
		"unhealthy": func(p *pod) { p.gate.set(elector.Unhealthy) },
		"resign": func(p *pod) {
			if err := p.Resign(p.t.Context(), elector.Resignation{Done: true}); !errors.Is(err, elector.ErrNotLeading) {
				p.t.Errorf("Resign: %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, server *leasetest.Memory) {
				p := start(t, server, "a")
				p.mustSay(elector.Leader, elector.Acquired)
				p.crash()
				renewed := time.Now()
				p.clock.SetRate(1e6) // none of the term's own timers goes off in this time
				time.Sleep(100 * time.Microsecond)
				p.clock.SetRate(1)
				end(p)
				synctest.Wait()
				v := p.View()
				if late := v.Since.Sub(renewed.Add(timing.Belief() - 100*time.Second)); late.Abs() > 10*time.Millisecond {
					t.Errorf("ended at %v, %v after its time", v.Since, late)
				}
				if l := p.losses(); !slices.Equal(l, []elector.Reason{elector.Expired}) {
					t.Errorf("OnLost heard %v", l)
				}
			})
		})
	}
}
