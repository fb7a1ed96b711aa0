package rig

import (
	"bufio"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// settle is how long a count waits for lines that are on their way.
const settle = 60 * time.Millisecond

// A Monitor counts the commands that clients send, by a MONITOR connection:
// INFO's counters also count the calls that scripts make, MONITOR marks those.
type Monitor struct {
	conn net.Conn
	done chan struct{} // closed when the reader has returned

	mu     sync.Mutex
	counts Counts // guarded by mu
}

// Counts are commands by name.
type Counts struct {
	Sent   map[string]int // by clients
	Script int            // by scripts, of any name
}

// StartMonitor begins to count.
func StartMonitor(r *Redis) (*Monitor, error) {
	conn, err := net.Dial("tcp", r.Addr)
	if err != nil {
		return nil, fmt.Errorf("monitor: %w", err)
	}
	if _, err := conn.Write([]byte("MONITOR\r\n")); err != nil {
		conn.Close()
		return nil, fmt.Errorf("monitor: %w", err)
	}
	m := &Monitor{conn: conn, done: make(chan struct{})}
	m.Take()
	go m.read() // Close waits for it
	return m, nil
}

func (m *Monitor) read() {
	defer close(m.done)
	lines := bufio.NewReaderSize(m.conn, 1<<20)
	for {
		line, more, err := lines.ReadLine()
		if err != nil {
			return
		}
		for more && err == nil { // the name stands at the front
			_, more, err = lines.ReadLine()
		}
		if name, script, ok := parseMonitor(string(line)); ok {
			m.mu.Lock()
			if script {
				m.counts.Script++
			} else {
				m.counts.Sent[name]++
			}
			m.mu.Unlock()
		}
	}
}

// parseMonitor reads `+1763683200.1 [0 127.0.0.1:50000] "get" "k"`, where a script's
// call has the source `lua`.
func parseMonitor(line string) (name string, script, ok bool) {
	_, rest, ok := strings.Cut(line, " [")
	if !ok {
		return "", false, false
	}
	source, rest, ok := strings.Cut(rest, `] "`)
	if !ok {
		return "", false, false
	}
	name, _, ok = strings.Cut(rest, `"`)
	return strings.ToUpper(name), strings.HasSuffix(source, " lua"), ok
}

// Take returns what was counted since the last Take.
func (m *Monitor) Take() Counts {
	time.Sleep(settle)
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.counts
	m.counts = Counts{Sent: map[string]int{}}
	return c
}

// Close ends the count.
func (m *Monitor) Close() {
	m.conn.Close()
	<-m.done
}

// Total returns how many commands clients sent.
func (c Counts) Total() int {
	var n int
	for _, v := range c.Sent {
		n += v
	}
	return n
}

// String lists the commands, the most frequent first.
func (c Counts) String() string {
	names := slices.SortedFunc(maps.Keys(c.Sent), func(a, b string) int {
		if d := c.Sent[b] - c.Sent[a]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", name, c.Sent[name])
	}
	return strings.Join(names, ", ")
}
