package redistest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	slots       = 16384
	shardCount  = 3
	nodeTimeout = 2 * time.Second // after which a silent node is given up
)

// A Cluster is a Redis Cluster of three masters with a replica each. Shards do not change,
// but which of its two servers is a shard's master does.
type Cluster struct {
	t      testing.TB
	Shards [shardCount][2]*Server
}

// StartCluster runs a cluster until the end of the test, and returns when every node says
// that it works. The options are for each of the six servers.
func StartCluster(t testing.TB, opts ...Option) *Cluster {
	t.Helper()
	c := &Cluster{t: t}
	opts = append(opts, ConfigLines("cluster-enabled yes", fmt.Sprint("cluster-node-timeout ", nodeTimeout.Milliseconds()),
		"cluster-replica-validity-factor 0", "repl-diskless-sync-delay 0"))
	first := Start(t, opts...)
	if first.cfg.tls {
		opts = append(opts, func(c *config) { c.certs = &first.certs })
	}
	for i := range c.Shards {
		for j := range c.Shards[i] {
			if c.Shards[i][j] = first; i+j > 0 {
				c.Shards[i][j] = Start(t, opts...)
			}
		}
	}
	for i, shard := range c.Shards {
		from, to := i*slots/shardCount, (i+1)*slots/shardCount
		args := []any{"CLUSTER", "ADDSLOTS"}
		for slot := from; slot < to; slot++ {
			args = append(args, slot)
		}
		shard[0].Must(args...)
		shard[0].Must("CLUSTER", "SET-CONFIG-EPOCH", i+1)
	}
	for _, s := range c.Nodes() {
		if s != first {
			first.Must("CLUSTER", "MEET", "127.0.0.1", s.port)
		}
	}
	for _, shard := range c.Shards {
		master := fmt.Sprint(shard[0].Must("CLUSTER", "MYID"))
		c.until("the replica knows its master", func() bool {
			_, err := shard[1].Do("CLUSTER", "REPLICATE", master)
			return err == nil
		})
	}
	c.until("all nodes are of one mind", func() bool {
		for _, s := range c.Nodes() {
			info := fmt.Sprint(s.Must("CLUSTER", "INFO"))
			if !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_known_nodes:6") {
				return false
			}
			if strings.Count(fmt.Sprint(s.Must("CLUSTER", "NODES")), "slave ") != shardCount {
				return false
			}
		}
		for _, shard := range c.Shards {
			if shard[1].Info("replication")["master_link_status"] != "up" {
				return false
			}
		}
		return true
	})
	return c
}

// Nodes returns all servers.
func (c *Cluster) Nodes() []*Server {
	var all []*Server
	for _, shard := range c.Shards {
		all = append(all, shard[0], shard[1])
	}
	return all
}

// Addrs returns the addresses of all servers.
func (c *Cluster) Addrs() []string {
	var all []string
	for _, s := range c.Nodes() {
		all = append(all, s.Addr())
	}
	return all
}

// Master returns the server that keeps a key now, and its replica.
func (c *Cluster) Master(key string) (master, replica *Server) {
	c.t.Helper()
	for _, pair := range c.Shards {
		for i, s := range pair {
			slot, err := s.Do("CLUSTER", "KEYSLOT", key)
			if err != nil {
				continue // it is down
			}
			if s.role() == "master" && c.owns(s, slot.(int64)) {
				return s, pair[1-i]
			}
		}
	}
	c.t.Fatalf("redistest: no master for %s", key)
	return nil, nil
}

// owns reports whether a master says of itself that it has a slot.
func (c *Cluster) owns(s *Server, slot int64) bool {
	for line := range strings.Lines(fmt.Sprint(s.Must("CLUSTER", "NODES"))) {
		f := strings.Fields(line)
		if len(f) < 9 || !strings.Contains(f[2], "myself") {
			continue
		}
		for _, part := range f[8:] {
			from, to, ok := strings.Cut(part, "-")
			if !ok {
				to = from
			}
			a, err := strconv.ParseInt(from, 10, 64)
			b, err2 := strconv.ParseInt(to, 10, 64)
			if err == nil && err2 == nil && a <= slot && slot <= b {
				return true
			}
		}
	}
	return false
}

// Failover makes the replica of a key's shard its master, as an operator does, and returns
// when it is.
func (c *Cluster) Failover(key string) {
	c.t.Helper()
	master, replica := c.Master(key)
	replica.Must("CLUSTER", "FAILOVER")
	c.UntilMaster(replica)
	c.until("the master is a replica", func() bool { return master.role() == "slave" })
}

// UntilMaster waits until a server says that it is a master.
func (c *Cluster) UntilMaster(s *Server) {
	c.t.Helper()
	c.until("the replica is master", func() bool { return s.role() == "master" })
}

// role returns what a server takes itself for; "" if it does not say: who becomes a replica
// drops its clients.
func (s *Server) role() string {
	answer, err := s.Do("ROLE")
	if list, ok := answer.([]any); ok && err == nil {
		return fmt.Sprint(list[0])
	}
	return ""
}

func (c *Cluster) until(what string, happened func() bool) {
	c.t.Helper()
	until(c.t, what, happened)
}

// until waits for something to happen.
func until(t testing.TB, what string, happened func() bool) {
	t.Helper()
	late := time.NewTimer(startLimit)
	defer late.Stop()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for !happened() {
		select {
		case <-again.C:
		case <-late.C:
			t.Fatalf("redistest: %s: not within %v", what, startLimit)
		}
	}
}
