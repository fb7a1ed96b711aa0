package jobs

import (
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/soloist-dev/soloist/internal/redistest"
)

// A client is one of clients/, with what it needs.
type client struct {
	name  string
	needs string
	env   []string
	args  []string // to which a sidecar's URL and the name of a lock are added
}

func clients() []client {
	return []client{
		{"go", "", nil, []string{binary("go")}},
		{"python", "python3", nil, []string{"python3", "clients/python/soloist_lock.py"}},
		{"node", "node", nil, []string{"node", "clients/node/soloist-lock.mjs"}},
		{"shell-ask", "curl", nil, []string{"sh", "clients/shell/lock.sh", "ask"}},
		holder(),
	}
}

func holder() client {
	return client{"shell-hold", "curl", nil, []string{"sh", "clients/shell/lock.sh", "hold"}}
}

func (c client) start(t *testing.T, url, lock string) *program {
	t.Helper()
	if c.needs != "" {
		if _, err := exec.LookPath(c.needs); err != nil {
			t.Skipf("no %s here to test the client with: %v", c.needs, err)
		}
	}
	return start(t, c.env, c.args[0], append(c.args[1:], url, lock)...)
}

// fence returns what a client has printed first.
func fence(t *testing.T, out string) uint64 {
	t.Helper()
	found := regexp.MustCompile(`(?m)^fence (\d+)$`).FindStringSubmatch(out)
	if found == nil {
		t.Fatalf("no fence in:\n%s", out)
	}
	n, err := strconv.ParseUint(found[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Each client gets a higher fence than the one before, and frees the lock.
func TestClientsInTurn(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	a := startSidecar(t, s, "a")
	last := uint64(0)
	for _, c := range clients() {
		t.Run(c.name, func(t *testing.T) {
			out := c.start(t, a.url, "in/turn").ends(0)
			f := fence(t, out)
			if f <= last || !strings.HasSuffix(out, "released\n") {
				t.Errorf("after fence %d:\n%s", last, out)
			}
			last = f
			if st := a.status(t, "in/turn"); len(st.Holders) > 0 || st.Fence != f {
				t.Errorf("after its end: %+v", st)
			}
		})
	}
}

// A client whose lock is taken away while it works says what to do about it.
func TestClientsUndo(t *testing.T) {
	t.Parallel()
	a := startSidecar(t, redistest.Start(t), "a")
	for _, c := range clients() {
		t.Run(c.name, func(t *testing.T) {
			p := c.start(t, a.url, c.name)
			a.awaitHolder(t, c.name)
			if err := a.take(c.name); err != nil {
				t.Error(err)
			}
			out := p.ends(1)
			fence(t, out)
			contains(t, out, "undo what was done", "it ended before")
		})
	}
}

// The answer to the first question gets lost, and the first release finds the sidecar
// without its store. A client asks again, and holds one lock all the time.
func TestClientsAskAgain(t *testing.T) {
	t.Parallel()
	a := startSidecar(t, redistest.Start(t), "a")
	for _, c := range clients() {
		if c.name == "shell-hold" { // one connection is one attempt
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			var posts, deletes atomic.Int32
			front := proxy(t, a, func(w http.ResponseWriter, r *http.Request) bool {
				switch {
				case r.Method == http.MethodPost && posts.Add(1) == 1:
					swallow(t, a, r)
					panic(http.ErrAbortHandler) // how a handler breaks a connection off
				case r.Method == http.MethodDelete && deletes.Add(1) == 1:
					w.WriteHeader(http.StatusServiceUnavailable)
					_, _ = io.WriteString(w, `{"error":"unknown","message":"the store did not answer"}`+"\n")
					return true
				}
				return false
			})
			f := fence(t, c.start(t, front, c.name).ends(0))
			if st := a.status(t, c.name); len(st.Holders) > 0 || st.Fence != f {
				t.Errorf("after its end, with fence %d: %+v", f, st)
			}
			if posts.Load() != 2 || deletes.Load() != 2 {
				t.Errorf("%d asks and %d releases, want 2 of each", posts.Load(), deletes.Load())
			}
		})
	}
}

// swallow passes a request on, and drops the answer.
func swallow(t *testing.T, to *sidecar, r *http.Request) {
	t.Helper()
	req, err := http.NewRequestWithContext(r.Context(), r.Method, to.url+r.URL.EscapedPath(), r.Body)
	if err != nil {
		t.Error(err)
		return
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return
	}
	_ = resp.Body.Close()
}

// The stream is the lock: without the sidecar the work is ended, and is to be undone.
func TestHoldEndsWithTheSidecar(t *testing.T) {
	t.Parallel()
	a := startSidecar(t, redistest.Start(t), "a")
	c := holder()
	c.env = []string{"WORK=100"} // so that it can't be over before the stream is
	p := c.start(t, a.url, "x")
	p.says("fence ") // the store knows of it before the script does
	if err := a.cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	contains(t, p.ends(1), "undo what was done.*the stream ended")
}

// A script that is ended leaves nothing held.
func TestHoldEndsWithTheScript(t *testing.T) {
	t.Parallel()
	a := startSidecar(t, redistest.Start(t), "a")
	p := holder().start(t, a.url, "x")
	a.awaitHolder(t, "x")
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	p.ends(143)
	for deadline := time.Now().Add(patience); len(a.status(t, "x").Holders) > 0; {
		if time.Now().After(deadline) {
			t.Fatal("it is still held")
		}
	}
}
