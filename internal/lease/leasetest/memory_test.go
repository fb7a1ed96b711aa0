package leasetest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
)

func TestMemoryConforms(t *testing.T) {
	m := NewMemory(Config{Claim: Claim, Lease: Lease})
	Conformance(t, func(*testing.T) lease.Store { return m.NewProcess("") })
}

func TestMemoryConformsInBubble(t *testing.T) {
	var m *Memory
	Suite{
		Open: func(*testing.T) lease.Store { return m.NewProcess("") },
		Bubble: func(t *testing.T, f func(*testing.T)) {
			synctest.Test(t, func(t *testing.T) {
				m = NewMemory(Config{Claim: Claim, Lease: Lease})
				f(t)
			})
		},
	}.Run(t)
}

func TestLinkConforms(t *testing.T) {
	m := NewMemory(Config{Claim: Claim, Lease: Lease})
	Conformance(t, func(t *testing.T) lease.Store {
		l := NewLink(m.NewProcess(""))
		t.Cleanup(l.Close)
		return l
	})
}

var _ time.Duration
