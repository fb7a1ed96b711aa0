package redistest

import (
	"fmt"
	"net"
	"testing"
	"time"
)

const (
	masterName = "main"
	downAfter  = time.Second // after which a silent master is given up
)

// Sentinels watch a master with two replicas.
type Sentinels struct {
	t         testing.TB
	Servers   []*Server // the first was the master when it began
	Sentinels []*Server
}

// StartSentinels runs three servers and three Sentinels until the end of the test, and
// returns when all of them know each other. The options are for the servers.
func StartSentinels(t testing.TB, opts ...Option) *Sentinels {
	t.Helper()
	s := &Sentinels{t: t}
	opts = append(opts, ConfigLines("repl-diskless-sync-delay 0", "repl-timeout 10"))
	s.Servers = []*Server{Start(t, opts...)}
	master := s.Servers[0]
	for range 2 {
		replica := append(opts[:len(opts):len(opts)], ConfigLines(fmt.Sprint("replicaof 127.0.0.1 ", master.port)))
		s.Servers = append(s.Servers, Start(t, replica...))
	}
	for range 3 {
		s.Sentinels = append(s.Sentinels, Start(t, ConfigLines(
			fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d 2", masterName, master.port),
			fmt.Sprintf("sentinel down-after-milliseconds %s %d", masterName, downAfter.Milliseconds()),
			fmt.Sprintf("sentinel failover-timeout %s 10000", masterName),
		), func(c *config) { c.args = []string{"--sentinel"} }))
	}
	until(t, "all Sentinels know all", func() bool {
		for _, sentinel := range s.Sentinels {
			if len(sentinel.Must("SENTINEL", "SENTINELS", masterName).([]any)) != 2 ||
				len(sentinel.Must("SENTINEL", "REPLICAS", masterName).([]any)) != 2 {
				return false
			}
		}
		return s.synced()
	})
	return s
}

// synced reports whether the replicas have all of the master's data.
func (s *Sentinels) synced() bool {
	return s.Master().Info("replication")["connected_slaves"] == "2" &&
		s.Servers[1].Info("replication")["master_link_status"] == "up" &&
		s.Servers[2].Info("replication")["master_link_status"] == "up"
}

// Name is what the Sentinels call the master.
func (s *Sentinels) Name() string { return masterName }

// Addrs returns the Sentinels' addresses.
func (s *Sentinels) Addrs() []string {
	var all []string
	for _, sentinel := range s.Sentinels {
		all = append(all, sentinel.Addr())
	}
	return all
}

// Master returns the server that most Sentinels take for the master.
func (s *Sentinels) Master() *Server {
	s.t.Helper()
	votes := map[string]int{}
	for _, sentinel := range s.Sentinels {
		addr, ok := sentinel.Must("SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterName).([]any)
		if ok && len(addr) == 2 {
			votes[net.JoinHostPort(fmt.Sprint(addr[0]), fmt.Sprint(addr[1]))]++
		}
	}
	for _, server := range s.Servers {
		if votes[server.Addr()] > len(s.Sentinels)/2 {
			return server
		}
	}
	s.t.Fatalf("redistest: no master: %v", votes)
	return nil
}

// Failover makes another server the master, as an operator does, and returns when most
// Sentinels say so.
func (s *Sentinels) Failover() {
	s.t.Helper()
	was := s.Master()
	until(s.t, "the Sentinels begin", func() bool {
		_, err := s.Sentinels[0].Do("SENTINEL", "FAILOVER", masterName)
		return err == nil
	})
	s.UntilNot(was)
}

// UntilNot waits until another server is the master.
func (s *Sentinels) UntilNot(was *Server) {
	s.t.Helper()
	until(s.t, "another server is the master", func() bool {
		m := s.Master()
		return m != was && m.role() == "master"
	})
}
