package leasetest

import (
	"maps"
	"sync"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
)

// DefaultClaim is for how long a Memory keeps a free slot for the first in line.
const DefaultClaim = 100 * time.Millisecond

// Config configures a Memory. The zero Config is usable.
type Config struct {
	// Clock is the server's wall clock; nil: time.Now. A [Clock] of its own gives the
	// server another rate, and jumps.
	Clock func() time.Time
	// Claim is how long a free slot is kept for the first in line; 0: DefaultClaim.
	Claim time.Duration
	// Lease is the longest lease in use, by which waiters plan; 0: 15 s.
	Lease time.Duration
	// Tap, if not nil, sees each message as it is published, whether or not anybody
	// listens. It must neither block nor call the Memory.
	Tap func(Message)
}

// A Message is what the server publishes to a waiter: "go", or its place in line.
type Message struct {
	Waiter, Lock string
	Go           bool
	Held         lease.Held // Rank, Left, Waiting, and who holds, if not Go
}

// Memory is a server in this process's memory, and, by its embedded Process, a client
// of it. Other clients are made by [Memory.NewProcess]. It starts no goroutines, so
// it may be used in synctest bubbles, if it was made in the same one. It is safe for
// concurrent use.
type Memory struct {
	*Process

	cfg Config

	mu        sync.Mutex
	locks     map[string]*record
	processes map[string]*Process
	reading   int64 // µs: the clock's latest reading
	ahead     int64 // µs that the server's time is ahead of that: see now
	instances int
	counts    map[string]int
}

// NewMemory returns an empty Memory.
func NewMemory(cfg Config) *Memory {
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Claim == 0 {
		cfg.Claim = DefaultClaim
	}
	if cfg.Lease == 0 {
		cfg.Lease = lease.DefaultTiming.LeaseDuration
	}
	m := &Memory{
		cfg:       cfg,
		locks:     map[string]*record{},
		processes: map[string]*Process{},
		counts:    map[string]int{},
	}
	m.Process = m.NewProcess("")
	return m
}

// now reads the server's clock, once for each script. A script takes time, so no two
// see the same microsecond, even where time stands still between two events.
func (m *Memory) now() int64 {
	if us := m.cfg.Clock().UnixMicro(); us != m.reading {
		m.reading, m.ahead = us, 0
	} else {
		m.ahead++
	}
	return m.reading + m.ahead
}

// Counts returns how often each operation reached the server ("acquire", "extend",
// "release", "inspect"), and how many messages it published ("publish").
func (m *Memory) Counts() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.counts)
}

// FlushAll loses all data. Subscriptions stay.
func (m *Memory) FlushAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.locks)
}

// Drop loses one key of a lock: "lk", "lk:0", "lk:1" … for a lease, "fn" for the
// fence, the burned tokens and the kind, "q" for the line.
func (m *Memory) Drop(lock, key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.locks[lock]
	switch {
	case r == nil:
	case key == "fn":
		r.fn = fn{}
	case key == "q":
		r.line = line{}
	default:
		delete(r.leases, key)
	}
}

// Snapshot remembers all data. Calling restore loses what was written since, as a
// server does that restarts from its last save, or a replica that was behind.
// Subscriptions stay; what was to expire meanwhile has.
func (m *Memory) Snapshot() (restore func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	saved := cloneAll(m.locks)
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.locks = cloneAll(saved)
	}
}

// State is what the server keeps of a lock, for comparison. What has expired is gone.
type State struct {
	Fence  uint64
	Kind   string   // "", "plain" or "slots"
	Slots  int      // greatest count seen, if above 1
	Burned string   // released tokens, latest first: with "+" behind it if it held a slot, else " "
	Line   []string // waiters, first to last
	Leases map[string]LeaseState
}

// LeaseState is the content of a slot's key.
type LeaseState struct {
	KeptFor string // the waiter that the slot is kept for; the rest is then empty
	Resting bool   // released, and kept from all
	Token   lease.Token
	Fence   uint64
	Holder  lease.Holder
	Left    time.Duration
}

// State returns what the server keeps of a lock.
func (m *Memory) State(lock string) State {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	r := m.record(lock, now)
	s := State{
		Fence: r.fn.fence, Kind: r.fn.kind, Slots: r.fn.slots,
		Leases: map[string]LeaseState{},
	}
	for _, b := range r.fn.burned {
		mark := " "
		if b.held {
			mark = "+"
		}
		s.Burned += string(b.token) + mark
	}
	for _, p := range r.line.places {
		s.Line = append(s.Line, p.member)
	}
	for key, v := range r.leases {
		s.Leases[key] = LeaseState{
			KeptFor: v.kept, Resting: v.resting, Token: v.token, Fence: v.fence, Holder: v.holder, Left: v.left(now),
		}
	}
	return s
}
