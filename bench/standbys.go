package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/soloist-dev/soloist/bench/internal/rig"
	"github.com/soloist-dev/soloist/bench/internal/systems"
)

// standbys counts what the clients of N standbys send to Redis while nothing
// happens, and, for many of them, what a hand-over costs.
func (b *bench) standbys(ctx context.Context) ([]*rig.Table, error) {
	window := pick(b, 45*time.Second, 10*time.Second)
	t := &rig.Table{
		Title:   "Commands per second from the clients of N standbys and a leader",
		Budget:  "≤ 5 at 100, ≤ 8 at 1000",
		Columns: []string{"standbys", "system", "commands/s", "calls by scripts/s", "× ours", "commands"},
	}
	h := &rig.Table{
		Title:   "Hand-over among many standbys",
		Columns: []string{"standbys", "system", "p50", "p99", "max", "commands per hand-over"},
	}
	for _, n := range []int{10, 100, 1000} {
		var ours float64
		for _, group := range b.standbyGroups(n) {
			rates, err := b.standbyRates(ctx, group, n, window, h)
			if err != nil {
				return []*rig.Table{t, h}, err
			}
			for _, r := range rates {
				if ours == 0 {
					ours = r.sent
				}
				t.Add(fmt.Sprint(n), r.system, rig.Rate(r.sent), rig.Rate(r.script), rig.Times(r.sent, ours), r.commands)
			}
		}
	}
	t.Note("Lease %v; every standby has connections of its own, as a pod has. Counted by MONITOR over %v after all were in "+
		"line and %v had passed, pings and subscriptions included; what scripts call is told apart by its source. "+
		"INFO's counters do not tell them apart: they show the sum of both columns.", leaseDuration, window, standbySettle)
	h.Note("%d hand-overs for each p50 and p99, then %d more under MONITOR for the commands, the renewals of that time included.",
		b.handoverCount(), countedHandovers)
	return []*rig.Table{t, h}, nil
}

const (
	standbySettle    = 5 * time.Second
	countedHandovers = 20
)

// polls says that a system's standbys ask again and again.
func polls(s systems.System) bool { return s.Name == "redislock" || s.Name == "redsync" }

// standbyGroups says which systems are counted side by side: all, but a thousand
// pollers fill the machine, so then each of them by itself.
func (b *bench) standbyGroups(n int) [][]systems.System {
	if n < 1000 {
		return [][]systems.System{b.systems(true)}
	}
	var groups [][]systems.System
	for _, s := range b.systems(true) {
		groups = append(groups, []systems.System{s})
	}
	return groups
}

// standbyRate is what one system's clients send per second.
type standbyRate struct {
	system       string
	sent, script float64
	commands     string
}

// standbyRates counts for several systems side by side, each on its server, and then
// measures the hand-overs of those that do not poll, if n is large, in h.
func (b *bench) standbyRates(ctx context.Context, list []systems.System, n int, window time.Duration, h *rig.Table) ([]standbyRate, error) {
	crowds := make([]*crowd, len(list))
	defer func() {
		for _, c := range crowds {
			if c != nil {
				c.close()
			}
		}
	}()
	for i, s := range list {
		b.logf("  gathering %d standbys, %s", n, s.Name)
		var err error
		if crowds[i], err = b.gather(ctx, s, n, leaseDuration); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	if err := rig.Sleep(ctx, standbySettle+time.Duration(n)*2*time.Millisecond); err != nil {
		return nil, err
	}
	b.logf("  counting for %v", window)
	rates := make([]standbyRate, len(list))
	errs := make([]error, len(list))
	var wg sync.WaitGroup
	for i, s := range list {
		wg.Go(func() { rates[i], errs[i] = countStandby(ctx, s, crowds[i], window) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	for i, s := range list { // pollers would disturb the others
		if polls(s) {
			crowds[i].close()
			crowds[i] = nil
		}
	}
	for i, s := range list {
		if crowds[i] == nil || n < 100 {
			continue
		}
		b.logf("  hand-overs among %d, %s", n, s.Name)
		if err := crowdHandovers(ctx, b, s, n, crowds[i], h); err != nil {
			if ctx.Err() != nil {
				return rates, err
			}
			h.Add(fmt.Sprint(n), s.Name, "failed: "+err.Error(), "", "", "")
		}
	}
	return rates, nil
}

func countStandby(ctx context.Context, s systems.System, c *crowd, window time.Duration) (standbyRate, error) {
	m, err := rig.StartMonitor(c.server)
	if err != nil {
		return standbyRate{}, err
	}
	defer m.Close()
	m.Take()
	start := time.Now()
	if err := rig.Sleep(ctx, window); err != nil {
		return standbyRate{}, err
	}
	counts := m.Take()
	took := time.Since(start).Seconds()
	return standbyRate{s.Name, float64(counts.Total()) / took, float64(counts.Script) / took, strings.ToLower(counts.String())}, nil
}

func crowdHandovers(ctx context.Context, b *bench, s systems.System, n int, c *crowd, h *rig.Table) error {
	samples, err := c.handovers(ctx, b.handoverCount())
	if err != nil {
		return err
	}
	m, err := rig.StartMonitor(c.server)
	if err != nil {
		return err
	}
	defer m.Close()
	m.Take()
	if _, err := c.handovers(ctx, countedHandovers); err != nil {
		return err
	}
	per := float64(m.Take().Total()) / countedHandovers
	h.Add(fmt.Sprint(n), s.Name, rig.Ms(median(samples)), rig.Ms(p99(samples)), rig.Ms(samples.Max()), rig.Rate(per))
	return nil
}
