package elector_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-dev/soloist/internal/elector"
	"github.com/soloist-dev/soloist/internal/lease/leasetest"
)

// A pod that is about to end leads on if it leads, and campaigns no more.
func TestDrain(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		a, b, c := start(t, server, "a"), start(t, server, "b"), start(t, server, "c")
		for range 2 {
			a.Drain()
			b.Drain()
		}
		if v := a.mustSay(elector.Leader, elector.Acquired); !v.Draining {
			t.Error("the leader does not say that it drains")
		}
		b.mustSay(elector.Standby, elector.Ending)
		if line := server.State(lock).Line; len(line) != 1 {
			t.Errorf("%d in line, want c alone", len(line))
		}
		time.Sleep(time.Minute)
		a.mustSay(elector.Leader, elector.Acquired)
		a.stop()
		<-a.done
		c.mustSay(elector.Leader, elector.Acquired)
		c.Drain()
		if err := c.Resign(t.Context(), elector.Resignation{Done: true}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		b.mustSay(elector.Standby, elector.Ending)
		c.mustSay(elector.Standby, elector.Ending)
		b.stop()
		<-b.done
		b.mustSay(elector.Standby, elector.Stopped)
	})
}

// An app that falls ill, or is ill, on a pod about to end does not come back.
func TestDrainOfTheSick(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		a, b := start(t, server, "a"), start(t, server, "b")
		b.gate.set(elector.Unhealthy)
		synctest.Wait()
		b.Drain()
		a.Drain()
		a.gate.set(elector.Silent)
		time.Sleep(time.Minute)
		a.gate.set("")
		b.gate.set("")
		time.Sleep(time.Minute)
		a.mustSay(elector.Standby, elector.Ending)
		b.mustSay(elector.Standby, elector.Ending)
	})
}

func withDrain(d time.Duration) func(*elector.Config) {
	return func(c *elector.Config) { c.DrainTimeout = d }
}

// With a drain time-out the app goes on leading until it says that it is done.
func TestDrainUntilDone(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		a, b := start(t, server, "a", withDrain(time.Minute)), start(t, server, "b")
		a.stop()
		time.Sleep(20 * time.Second)
		if v := a.mustSay(elector.Leader, elector.Acquired); !v.Draining {
			t.Error("does not say that it drains")
		}
		if err := a.Resign(t.Context(), elector.Resignation{Done: true}); err != nil {
			t.Fatal(err)
		}
		<-a.done
		b.mustSay(elector.Leader, elector.Acquired)
	})
}

// An app that is not done in time may still be at work: its lease is left to run out.
func TestB18DrainTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		a, b := start(t, server, "a", withDrain(5*time.Second)), start(t, server, "b")
		from := time.Now()
		a.stop()
		<-a.done
		if took := time.Since(from); took != 5*time.Second {
			t.Errorf("stopped after %v", took)
		}
		a.mustSay(elector.Standby, elector.DrainOver)
		b.mustSay(elector.Standby, elector.HeldByPeer)
		if took := b.await(elector.Leader, elector.Acquired, timing.LeaseDuration); took < timing.Belief()-timing.RetryPeriod {
			t.Errorf("taken over after %v, while the app was told that it leads", took)
		}
	})
}
