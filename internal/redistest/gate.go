package redistest

import "sync"

// A Direction is a way through the proxy.
type Direction int

// The directions.
const (
	ToServer Direction = 1 << iota
	ToClient
	Both = ToServer | ToClient
)

// BlackHole lets nothing pass in a direction until heal is called, on connections
// that exist and on new ones, which are accepted: a peer sees silence, not even the
// end of a connection. Like TCP, heal delivers what waited, also a request whose
// client has long given up; CloseAll before heal loses it. Neither blocks. What a
// connection was about to write as BlackHole was called may still pass.
func (p *Proxy) BlackHole(dir Direction) (heal func()) {
	var shut []*gate
	for d, g := range p.gates {
		if dir&d != 0 {
			g.add(1)
			shut = append(shut, g)
		}
	}
	return sync.OnceFunc(func() {
		for _, g := range shut {
			g.add(-1)
		}
	})
}

// A gate is passed while nobody has shut it.
type gate struct {
	mu     sync.Mutex
	shut   int
	opened chan struct{} // closed when shut becomes 0
}

func newGate() *gate { return &gate{opened: make(chan struct{})} }

func (g *gate) add(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut += n
	if g.shut == 0 {
		close(g.opened)
		g.opened = make(chan struct{})
	}
}

// pass blocks until the gate is open, and returns false if stop was closed first.
func (g *gate) pass(stop <-chan struct{}) bool {
	for {
		g.mu.Lock()
		shut, opened := g.shut, g.opened
		g.mu.Unlock()
		if shut == 0 {
			return true
		}
		select {
		case <-opened:
		case <-stop:
			return false
		}
	}
}
