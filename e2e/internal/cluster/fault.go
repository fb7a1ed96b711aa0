package cluster

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Node runs a command on the node, as root, and returns its standard output.
func (c *Cluster) Node(args ...string) string {
	c.t.Helper()
	return c.must(c.node("", args...))
}

// Signal sends a signal, as in "KILL" or "STOP", to the main processes of containers of a pod, from outside: a container
// cannot refuse it, as it could as process 1 of its own namespace.
func (c *Cluster) Signal(namespace, pod, signal string, containers ...string) {
	c.t.Helper()
	pids := make([]string, len(containers))
	for i, container := range containers {
		pids[i] = c.pid(namespace, pod, container)
	}
	c.Node("sh", "-c", "kill -"+signal+" "+strings.Join(pids, " "))
}

// InNetns runs a command of the node in the network namespace of a pod. It sees the pod's loopback and addresses,
// and needs nothing in the pod's images.
func (c *Cluster) InNetns(namespace, pod string, args ...string) (string, error) {
	c.t.Helper()
	return c.node("", append(c.netns(namespace, pod), args...)...)
}

// cuts counts the cuts of this process: each has a table of its own.
var cuts atomic.Int64

// Cut drops all packets between a pod and the addresses, in the pod's network namespace, until heal is called or
// the test ends. A Service is cut by its cluster IP, the API server too. Restarts of the pod's containers do not
// heal it.
func (c *Cluster) Cut(namespace, pod string, addresses ...string) (heal func()) {
	c.t.Helper()
	table := fmt.Sprintf("cut%d", cuts.Add(1))
	var out, in strings.Builder
	for _, a := range addresses {
		family := "ip"
		if addr, err := netip.ParseAddr(a); err != nil {
			c.t.Fatalf("cut: %v", err)
		} else if addr.Is6() {
			family = "ip6"
		}
		fmt.Fprintf(&out, "%s daddr %s drop; ", family, a)
		fmt.Fprintf(&in, "%s saddr %s drop; ", family, a)
	}
	// Before connection tracking (-200), so that what is established is cut too.
	rules := fmt.Sprintf(`table inet %s {
	chain output { type filter hook output priority -300; %s}
	chain input { type filter hook input priority -300; %s}
}
`, table, out.String(), in.String())
	netns := c.netns(namespace, pod)
	c.must(c.node(rules, append(netns, "nft", "-f", "-")...))
	var once sync.Once
	heal = func() {
		once.Do(func() {
			if _, err := c.node("", append(netns, "nft", "delete", "table", "inet", table)...); err != nil {
				c.t.Logf("heal: %v (the pod may be gone)", err)
			}
		})
	}
	c.Cleanup(heal)
	return heal
}

// netns is the beginning of a command line on the node that runs the rest in the pod's network namespace.
func (c *Cluster) netns(namespace, pod string) []string {
	c.t.Helper()
	return []string{"nsenter", "--target", c.pid(namespace, pod, ""), "--net", "--"}
}

// pid is the main process of a container, or of the pod's sandbox, as the node counts.
func (c *Cluster) pid(namespace, pod, container string) string {
	c.t.Helper()
	uid := c.Kubectl("get", "pod", pod, "--namespace", namespace, "--output=jsonpath={.metadata.uid}")
	filter := `labels."io.kubernetes.pod.uid"==` + uid
	if container == "" {
		filter += `,labels."io.cri-containerd.kind"==sandbox`
	} else {
		filter += `,labels."io.kubernetes.container.name"==` + container
	}
	ids := make(map[string]bool) // containers that have ended are among them
	for _, id := range strings.Fields(c.Node("ctr", "--namespace=k8s.io", "containers", "list", "--quiet", filter)) {
		ids[id] = true
	}
	for line := range strings.Lines(c.Node("ctr", "--namespace=k8s.io", "tasks", "list")) {
		if f := strings.Fields(line); len(f) == 3 && ids[f[0]] && f[2] == "RUNNING" {
			return f[1]
		}
	}
	c.t.Fatalf("pod %s/%s, container %q: no process", namespace, pod, container)
	return ""
}

func (c *Cluster) node(stdin string, args ...string) (string, error) {
	if len(c.p.onNode) == 0 {
		return "", errors.New("with E2E_KUBECONFIG, E2E_NODE must begin a command that runs on the node, as in \"docker exec -i NAME\"")
	}
	line := slices.Concat(c.p.onNode, args)
	return c.command(stdin, line[0], line[1:]...)
}

// OOM lets the main process of a container run out of memory: its limit is lowered to what it uses, and further until
// the kernel kills it.
func (c *Cluster) OOM(namespace, pod, container string) {
	c.t.Helper()
	c.Node("bash", "-c", oomScript, "oom", c.pid(namespace, pod, container))
}

const oomScript = `set -u
pid=$1
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
	dir=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/$pid/cgroup) limit=memory.max use=memory.current
else
	dir=/sys/fs/cgroup/memory$(sed -n 's/^[0-9]*:memory://p' /proc/$pid/cgroup) limit=memory.limit_in_bytes use=memory.usage_in_bytes
fi
for _ in $(seq 200); do
	[ -d /proc/$pid ] || exit 0
	n=$(cat $dir/$use 2>/dev/null) || exit 0
	echo $((n - n / 20)) 2>/dev/null >$dir/$limit # refused while nothing can be given up
	sleep 0.05
done
echo "process $pid lives with a limit of $(cat $dir/$limit) and a use of $(cat $dir/$use)" >&2
exit 1`

// RestartKubelet kills the kubelet and starts it again.
func (c *Cluster) RestartKubelet() {
	c.t.Helper()
	c.Node("bash", "-c", kubeletScript)
}

const kubeletScript = `set -eu
if systemctl is-active kubelet >/dev/null 2>&1; then
	systemctl kill -s KILL kubelet
	exec systemctl restart kubelet
fi
pid=$(pgrep -o -f '/kubelet --config')
log=$(readlink /proc/$pid/fd/1)
mapfile -d '' -t args </proc/$pid/cmdline
kill -9 $pid
while [ -d /proc/$pid ]; do sleep 0.05; done
setsid "${args[@]}" >>"$log" 2>&1 </dev/null &`
