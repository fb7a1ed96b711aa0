// Package e2e tests Soloist in a real cluster. The tests in this file are of the cluster and the means to break
// it: when others fail, these tell whose fault it is.
package e2e

import (
	"bufio"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/soloist-dev/soloist/e2e/internal/cluster"
	"github.com/soloist-dev/soloist/e2e/internal/image"
)

const (
	redisImage = "docker.io/soloist-e2e/redis:installed"
	beatImage  = "docker.io/soloist-e2e/beat:e2e"
	soon       = 30 * time.Second // for what takes a second or two on an idle machine
)

// runPod runs a pod of one container, both of that name, and waits until it is ready. What Pod Security demands
// in a restricted namespace is there; fields are more of the container's.
func runPod(c *cluster.Cluster, namespace, name, image, fields string) {
	c.Apply(fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 2
  securityContext: {runAsNonRoot: true, fsGroup: 999, seccompProfile: {type: RuntimeDefault}}
  volumes: [{name: data, emptyDir: {}}]
  containers:
  - name: %[2]s
    image: %[3]s
    imagePullPolicy: IfNotPresent
    securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
    volumeMounts: [{name: data, mountPath: /data}]
    %[4]s
`, namespace, name, image, fields))
	c.Kubectl("wait", "--for=condition=Ready", "pod/"+name, "--namespace", namespace, "--timeout=60s")
}

func runRedis(t *testing.T, c *cluster.Cluster, namespace string) {
	t.Helper()
	tar := filepath.Join(t.TempDir(), "redis.tar")
	if err := image.Redis(t.Context(), tar, redisImage); err != nil {
		t.Fatal(err)
	}
	c.Load(tar)
	runPod(c, namespace, "redis", redisImage, `
    args: [--dir, /data, --appendonly, "yes", --appendfsync, always, --protected-mode, "no"]
    readinessProbe: {exec: {command: [redis-cli, ping]}, periodSeconds: 1}`)
}

func runBeat(t *testing.T, c *cluster.Cluster, namespace string) {
	t.Helper()
	tar := filepath.Join(t.TempDir(), "beat.tar")
	if err := image.Go(t.Context(), tar, beatImage, ".", "./internal/beat"); err != nil {
		t.Fatal(err)
	}
	c.Load(tar)
	runPod(c, namespace, "beat", beatImage, "")
}

// restarted waits for the pod's container to be ready again after its first restart.
func restarted(c *cluster.Cluster, namespace, name string) {
	c.Eventually(name+" is restarted", soon, func() error {
		got, err := c.Try("get", "pod", name, "--namespace", namespace,
			"--output=jsonpath={.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].ready}")
		if err == nil && got != "1 true" {
			err = fmt.Errorf("restarts and ready: %s", got)
		}
		return err
	})
}

func TestNode(t *testing.T) {
	c := cluster.Up(t)
	c.Kubectl("wait", "--for=condition=Ready", "nodes", "--all", "--timeout=60s")
	t.Log(c.Kubectl("version"))
	if got := c.Helm("list", "--all-namespaces", "--short"); got != "" {
		t.Errorf("releases in a new cluster: %s", got)
	}
}

func TestRedis(t *testing.T) {
	c := cluster.Up(t)
	ns := c.Namespace("redis")
	runRedis(t, c, ns)
	cli := func(args ...string) string {
		return c.Kubectl(append([]string{"exec", "--namespace", ns, "redis", "--", "redis-cli"}, args...)...)
	}
	if got := cli("ping"); got != "PONG" {
		t.Fatalf("ping: %q", got)
	}
	cli("set", "k", "v")
	c.Signal(ns, "redis", "KILL", "redis")
	restarted(c, ns, "redis")
	if got := cli("get", "k"); got != "v" {
		t.Errorf("after kill -9, with appendfsync always: %q, not v", got)
	}

	conn, err := net.Dial("tcp", c.Forward(ns, "pod/redis", 6379))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "PING\r\n")
	if got, err := bufio.NewReader(conn).ReadString('\n'); got != "+PONG\r\n" {
		t.Errorf("ping through port-forward: %q, %v", got, err)
	}
}

func TestKill(t *testing.T) {
	c := cluster.Up(t)
	ns := c.Namespace("kill")
	runBeat(t, c, ns)
	logs := func(args ...string) string {
		return c.Kubectl(append([]string{"logs", "--namespace", ns, "beat"}, args...)...)
	}
	first, _, _ := strings.Cut(logs(), "\n")
	if !strings.HasPrefix(first, "start ") {
		t.Fatalf("log: %q", first)
	}
	c.Signal(ns, "beat", "KILL", "beat")
	restarted(c, ns, "beat")
	if got := logs("--previous"); !strings.HasPrefix(got, first) || strings.Contains(got, "stop") {
		t.Errorf("log of the killed process: %q", got)
	}
	if got := logs(); !strings.HasPrefix(got, "start ") || strings.HasPrefix(got, first) {
		t.Errorf("log of its successor: %q", got)
	}
}

func TestCut(t *testing.T) {
	c := cluster.Up(t)
	ns := c.Namespace("cut")
	runRedis(t, c, ns)
	runBeat(t, c, ns)
	redis := c.Kubectl("get", "pod", "redis", "--namespace", ns, "--output=jsonpath={.status.podIP}")
	api := c.Kubectl("get", "service", "kubernetes", "--namespace=default", "--output=jsonpath={.spec.clusterIP}")
	connects := func(address, port string) bool {
		_, err := c.InNetns(ns, "beat", "timeout", "2", "bash", "-c", "exec 3<>/dev/tcp/"+address+"/"+port)
		return err == nil
	}
	both := func(what string, wantRedis, wantAPI bool) {
		t.Helper()
		if gotRedis, gotAPI := connects(redis, "6379"), connects(api, "443"); gotRedis != wantRedis || gotAPI != wantAPI {
			t.Errorf("%s: connects to Redis: %t, to the API server: %t; not %t and %t", what, gotRedis, gotAPI, wantRedis, wantAPI)
		}
	}
	both("before", true, true)
	healRedis := c.Cut(ns, "beat", redis)
	both("cut from Redis", false, true)
	healAPI := c.Cut(ns, "beat", api)
	both("cut from both", false, false)
	healRedis()
	both("cut from the API server", true, false)
	healAPI()
	both("healed", true, true)
}
