package cluster

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

const serveLimit = 30 * time.Second

var forwarding = regexp.MustCompile(`^Forwarding from (127\.0\.0\.1:\d+) `)

// Forward makes a port of a pod, also one on its loopback, reachable from here until the test ends, and returns
// its local address. The target is "pod/NAME", or "service/NAME" for one of its pods. It breaks with the
// container that listens.
func (c *Cluster) Forward(namespace, target string, port int) string {
	c.t.Helper()
	return c.serve("forward "+target, forwarding,
		"port-forward", "--namespace", namespace, "--address=127.0.0.1", target, fmt.Sprintf(":%d", port))
}

// serve runs a kubectl that serves until the test ends, and returns the address that it says.
func (c *Cluster) serve(what string, says *regexp.Regexp, args ...string) string {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	cmd := exec.CommandContext(ctx, c.p.kubectl, args...)
	cmd.Env = c.p.env()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		c.t.Fatalf("%s: %v", what, err)
	}
	address, ended := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		for s := bufio.NewScanner(stdout); s.Scan(); { // to its end, or kubectl could block on a full pipe
			if m := says.FindStringSubmatch(s.Text()); m != nil {
				address <- m[1]
			}
		}
	}()
	end := func() {
		cancel()
		<-ended
		_ = cmd.Wait() // it was killed
	}
	select {
	case a := <-address:
		c.Cleanup(end)
		return a
	case <-ended:
	case <-time.After(serveLimit):
	}
	end()
	c.t.Fatalf("%s: %s", what, stderr.String())
	return ""
}
