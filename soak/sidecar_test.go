package soak

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/soloist-dev/soloist/internal/redistest"
)

// sidecar is a process that is started again whenever it is killed.
type sidecar struct {
	t     *testing.T
	name  string
	addr  string
	store string
	proxy *redistest.Proxy

	mu  sync.Mutex
	cmd *exec.Cmd
	log bytes.Buffer
}

func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "sidecar")
	cmd := exec.Command("go", "build", "-race", "-o", binary, "./cmd/sidecar")
	cmd.Dir = ".." // the product's own module
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return binary
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func newSidecar(t *testing.T, binary, name string, s *redistest.Server) *sidecar {
	t.Helper()
	p := redistest.NewProxy(t, s)
	c := &sidecar{t: t, name: name, addr: freeAddr(t), store: p.URL(), proxy: p}
	c.start(binary)
	t.Cleanup(func() {
		c.kill()
		if t.Failed() {
			c.mu.Lock()
			defer c.mu.Unlock()
			log := c.log.Bytes()
			t.Logf("%s: %s", c.name, log[max(0, len(log)-4000):])
		}
	})
	return c
}

func (c *sidecar) start(binary string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cmd = exec.Command(binary, "elect", "--jobs-only", "--http-address="+c.addr, "--probe-address=",
		"--name="+c.name, "--delayed-restart=off", "--log-format=text")
	c.cmd.Env = []string{"SOLOIST_STORE=" + c.store}
	c.cmd.Stderr = locked{c}
	if err := c.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
}

// locked writes to the log of a sidecar.
type locked struct{ *sidecar }

func (l locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log.Write(b)
}

func (c *sidecar) kill() {
	c.mu.Lock()
	cmd := c.cmd
	c.mu.Unlock()
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
}

func (c *sidecar) signal(s syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.t.Error(err)
	}
}

// answer is what a sidecar says about a lock.
type answer struct {
	Error, Token string
	Fence        uint64
	ValidForMS   int64 `json:"valid_for_ms"`
	Held         bool
}

var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}

// do asks a sidecar. An error means that there was no answer.
func (c *sidecar) do(ctx context.Context, method, path string, body map[string]any) (a answer, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return a, err
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+c.addr+path, bytes.NewReader(text))
	if err != nil {
		return a, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	text, err = io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(text, &a)
	}
	if err != nil {
		return a, fmt.Errorf("%s: %w", text, err)
	}
	return a, nil
}

// get decodes what the sidecar has at a path.
func (c *sidecar) get(ctx context.Context, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.addr+path, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return json.NewDecoder(resp.Body).Decode(into)
}

// answers waits until the sidecar does.
func (c *sidecar) answers(ctx context.Context) {
	c.t.Helper()
	for {
		if _, err := c.do(ctx, http.MethodGet, "/locks", nil); err == nil {
			return
		}
		if ctx.Err() != nil {
			c.t.Fatalf("%s does not answer", c.name)
		}
		time.Sleep(10 * time.Millisecond) // real time: a process starts
	}
}
