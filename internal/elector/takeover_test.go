package elector_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/soloist-dev/soloist/internal/elector"
	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/lease/leasetest"
)

func TestReclaim(t *testing.T) {
	me := func(uid, address string) func(*elector.Config) {
		return func(c *elector.Config) {
			c.Identity.PodUID, c.Identity.Address, c.Reclaim = uid, address, true
		}
	}
	for _, c := range []struct {
		uid, address string
		want         bool
	}{
		{"uid-1", "localhost:4040", true},
		{"uid-2", "localhost:4040", false},
		{"uid-1", "localhost:40400", false},
		{"uid", "localhost:4040", false},
		{"", "localhost:4040", false},
	} {
		bubble(t, func(t *testing.T, server *leasetest.Memory) {
			old := start(t, server, "a", me("uid-1", "localhost:4040"))
			fence := old.View().Fence
			old.crash()
			next := start(t, server, "a", me(c.uid, c.address))
			if !c.want {
				next.mustSay(elector.Standby, elector.HeldByPeer)
				return
			}
			if v := next.mustSay(elector.Leader, elector.Reclaimed); v.Fence <= fence {
				t.Errorf("fence %d after %d", v.Fence, fence)
			}
		})
	}
}

// deaths calls everybody dead that it is asked about.
type deaths struct{ told []lease.Held }

func (d *deaths) Dead(_ context.Context, h lease.Held) bool {
	d.told = append(d.told, h)
	return true
}

// A death is taken for what it is, and every term is noted before anybody hears of it.
func TestFailover(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		a := start(t, server, "a")
		fence := a.View().Fence
		a.crash()
		var noted []uint64
		told := make(chan struct{})
		b := start(t, server, "b", func(c *elector.Config) {
			c.Failure = &deaths{}
			c.OnGrant = func(fence uint64) {
				<-told
				noted = append(noted, fence)
			}
		})
		synctest.Wait()
		if v := b.View(); v.Leading || v.Phase == elector.Leader {
			t.Errorf("leads before its term is noted: %+v", v)
		}
		close(told)
		v := b.mustSay(elector.Leader, elector.Failover)
		if v.Fence <= fence {
			t.Errorf("fence %d after %d", v.Fence, fence)
		}
		if !slices.Equal(noted, []uint64{v.Fence}) {
			t.Errorf("noted %d, want %d", noted, v.Fence)
		}
	})
}

// Its own lease, which it could not renew, is not taken back: only a predecessor's is.
func TestOwnLeaseIsNotReclaimed(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		a := start(t, server, "a", func(c *elector.Config) {
			c.Identity.PodUID, c.Identity.Address, c.Reclaim = "uid", "localhost:4040", true
		})
		a.crash()
		a.await(elector.Standby, elector.Expired, timing.RenewDeadline)
		a.link.SetDown(false)
		a.await(elector.Leader, elector.Acquired, timing.LeaseDuration)
	})
}
