package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/soloist-dev/soloist/internal/redistest"
)

// The processes of these tests are the built binary, with a lease that is short, and long
// enough for a busy machine.
const (
	leaseDuration = 3 * time.Second
	renewDeadline = 2 * time.Second
	retryPeriod   = 400 * time.Millisecond
	patience      = 20 * time.Second // for what must come; never a measure of how fast
)

var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "sidecar")
	if err == nil {
		binary = filepath.Join(dir, "sidecar")
		var out []byte
		if out, err = exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
	}
	code := 1
	if err == nil {
		code = m.Run()
	} else {
		fmt.Fprintln(os.Stderr, err)
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// answer is the body of /leader.
type answer struct {
	Leader   bool   `json:"leader"`
	State    string `json:"state"`
	Holder   string `json:"holder"`
	Fence    uint64 `json:"fence"`
	ValidFor int64  `json:"valid_for_ms"`
	Version  int64  `json:"version"`
	Reason   string `json:"reason"`
	Draining bool   `json:"draining"`
}

// process is one running sidecar. Its log is read as it is written.
type process struct {
	t    *testing.T
	name string
	addr string // of the app's interface
	cmd  *exec.Cmd
	exit chan int // receives the exit code, once

	mu    sync.Mutex
	lines []map[string]any
	more  chan struct{} // closed and replaced at each line
	seen  []sighting
}

// sighting is one answer of /leader, between two readings of this test's clock.
type sighting struct {
	sent, got time.Time
	answer
}

// launch starts a sidecar on the server, with the rig's timing; args come last.
func launch(t *testing.T, url, name string, env []string, args ...string) *process {
	t.Helper()
	p := &process{t: t, name: name, exit: make(chan int, 1), more: make(chan struct{})}
	p.cmd = exec.Command(binary, append([]string{
		"elect", "--lock=city-ids", "--name=" + name, "--http-address=127.0.0.1:0", "--probe-address=",
		"--lease-duration=" + leaseDuration.String(), "--renew-deadline=" + renewDeadline.String(),
		"--retry-period=" + retryPeriod.String(), "--delayed-restart=off", "--log-level=debug",
	}, args...)...)
	p.cmd.Env = append([]string{"SOLOIST_STORE=" + url}, env...)
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() { p.read(stderr) })
	go func() { // ends with the process, which the cleanup kills
		reading.Wait()
		_ = p.cmd.Wait()
		p.exit <- code(p.cmd.ProcessState)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Signal(syscall.SIGCONT)
		_ = p.cmd.Process.Kill()
		reading.Wait()
		if t.Failed() {
			p.dump()
		}
	})
	return p
}

// start launches a sidecar and waits until it listens.
func start(t *testing.T, s *redistest.Server, name string, args ...string) *process {
	t.Helper()
	p := launch(t, s.URL(), name, nil, args...)
	p.listening()
	return p
}

func (p *process) listening() {
	p.t.Helper()
	p.addr = p.await("started")["http"].(string)
}

func code(s *os.ProcessState) int {
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return -int(ws.Signal())
	}
	return s.ExitCode()
}

func (p *process) read(r io.Reader) {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		line := map[string]any{}
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			line["msg"] = lines.Text()
		}
		p.mu.Lock()
		p.lines = append(p.lines, line)
		close(p.more)
		p.more = make(chan struct{})
		p.mu.Unlock()
	}
}

// await returns the first log line whose message or reason is one of these.
func (p *process) await(words ...string) map[string]any {
	p.t.Helper()
	for deadline := time.After(patience); ; {
		p.mu.Lock()
		more := p.more
		for _, line := range p.lines {
			for _, w := range words {
				if line["reason"] == w || strings.Contains(fmt.Sprint(line["msg"]), w) {
					p.mu.Unlock()
					return line
				}
			}
		}
		p.mu.Unlock()
		select {
		case <-more:
		case <-deadline:
			p.t.Fatalf("%s: no line with %v in its log", p.name, words)
		}
	}
}

func (p *process) dump() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.lines[max(0, len(p.lines)-60):] {
		b, _ := json.Marshal(line)
		p.t.Logf("%s: %s", p.name, b)
	}
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// exited returns the exit code; minus the signal's number if one killed it.
func (p *process) exited() int {
	p.t.Helper()
	select {
	case c := <-p.exit:
		return c
	case <-time.After(patience):
		p.t.Fatalf("%s does not exit", p.name)
		return 0
	}
}

var client = http.Client{Timeout: 2 * time.Second}

// ask returns one answer of /leader, which it remembers.
func (p *process) ask() (answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.addr+"/leader", nil)
	if err != nil {
		return answer{}, err
	}
	s := sighting{sent: time.Now()}
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&s.answer); err != nil {
		return answer{}, err
	}
	s.got = time.Now()
	if s.Leader != (resp.StatusCode == http.StatusOK) {
		p.t.Errorf("%s: status %d with leader %v", p.name, resp.StatusCode, s.Leader)
	}
	p.mu.Lock()
	p.seen = append(p.seen, s)
	p.mu.Unlock()
	return s.answer, nil
}

// leads waits until one of the processes leads, asking all of them, and returns it.
func leads(t *testing.T, all ...*process) (*process, answer) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		for _, p := range all {
			if a, err := p.ask(); err == nil && a.Leader {
				return p, a
			}
		}
	}
	t.Fatal("nobody leads")
	return nil, answer{}
}

// others returns all but p.
func others(p *process, all []*process) []*process {
	var out []*process
	for _, o := range all {
		if o != p {
			out = append(out, o)
		}
	}
	return out
}

// watch asks all of the processes again and again, for d.
func watch(d time.Duration, all ...*process) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		for _, p := range all {
			_, _ = p.ask() // one that is stopped or dead does not answer
		}
	}
}

// judge demands of all that was seen that terms did not overlap, and that fences rose.
func judge(t *testing.T, all ...*process) {
	t.Helper()
	type term struct {
		who         string
		first, last time.Time // surely led from first to last
	}
	terms := map[uint64]*term{}
	for _, p := range all {
		for _, s := range p.seen {
			if !s.Leader {
				continue
			}
			if tm := terms[s.Fence]; tm == nil {
				terms[s.Fence] = &term{p.name, s.got, s.sent}
			} else if tm.who != p.name {
				t.Errorf("fence %d of both %s and %s", s.Fence, tm.who, p.name)
			} else {
				tm.last = s.sent
			}
		}
	}
	for f, a := range terms {
		for g, b := range terms {
			if f < g && a.last.After(b.first) {
				t.Errorf("%s (fence %d) led until %v, and %s (fence %d) from %v", a.who, f, a.last, b.who, g, b.first)
			}
		}
	}
}
