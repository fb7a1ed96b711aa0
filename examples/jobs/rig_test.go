package jobs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/soloist-dev/soloist/internal/redistest"
)

const patience = 20 * time.Second // for what must come; never a measure of how fast

var (
	binaries string   // the directory of the sidecar and of the examples
	raceFlag []string // for the examples: as these tests were built
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "jobs")
	if err == nil {
		binaries = dir
		var other error
		var building sync.WaitGroup
		building.Go(func() { other = build(".", append(raceFlag, "-o", dir, "./...")...) })
		err = build(filepath.Join("..", ".."), "-o", binary("sidecar"), "./cmd/sidecar")
		building.Wait()
		err = errors.Join(err, other)
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

// build leaves out what these tests have no use for and the linker spends a third of its time on.
func build(dir string, args ...string) error {
	args = slices.Concat([]string{"build", "-C", dir, "-buildvcs=false", "-ldflags=-s -w"}, args)
	out, err := exec.Command("go", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("go %v: %w: %s", args, err, out)
	}
	return nil
}

func binary(name string) string { return filepath.Join(binaries, name) }

// A sidecar is a running one that keeps locks for jobs.
type sidecar struct {
	url, store string
	cmd        *exec.Cmd

	mu  sync.Mutex
	log []string
}

func startSidecar(t *testing.T, s *redistest.Server, name string) *sidecar {
	t.Helper()
	c := &sidecar{store: s.URL()}
	c.cmd = exec.CommandContext(t.Context(), binary("sidecar"), "elect", "--jobs-only", "--name="+name,
		"--http-address=127.0.0.1:0", "--probe-address=", "--delayed-restart=off")
	c.cmd.Env = []string{"SOLOIST_STORE=" + c.store}
	stderr, err := c.cmd.StderrPipe()
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	address := make(chan string, 1)
	read := make(chan struct{})
	go func() { // ends with the sidecar
		defer close(read)
		c.read(stderr, address)
	}()
	t.Cleanup(func() { // the test's context, and with it the sidecar, has ended
		<-read
		_ = c.cmd.Wait() // it was killed
		if t.Failed() {
			t.Logf("log of %s:\n%s", name, strings.Join(c.log, "\n"))
		}
	})
	select {
	case a := <-address:
		c.url = "http://" + a
	case <-read:
		t.Fatalf("%s ends", name)
	case <-time.After(patience):
		t.Fatalf("%s does not start", name)
	}
	return c
}

func (c *sidecar) read(r io.Reader, address chan<- string) {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		c.mu.Lock()
		c.log = append(c.log, lines.Text())
		c.mu.Unlock()
		var line struct{ Msg, HTTP string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "started" {
			address <- line.HTTP
		}
	}
}

// status is what GET /locks/{name} tells.
type status struct {
	Fence   uint64
	Holders []struct{ Holder string }
}

func (c *sidecar) status(t *testing.T, lock string) (st status) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url+"/locks/"+url.PathEscape(lock), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&st); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("status %d: %v", resp.StatusCode, err)
	}
	return st
}

// awaitHolder waits until somebody holds a lock.
func (c *sidecar) awaitHolder(t *testing.T, lock string) {
	t.Helper()
	for deadline := time.Now().Add(patience); len(c.status(t, lock).Holders) == 0; {
		if time.Now().After(deadline) {
			t.Fatalf("nobody takes %s", lock)
		}
	}
}

// take ends what is held of a lock, so that another may have it at once.
func (c *sidecar) take(lock string) error {
	out, err := exec.Command(binary("sidecar"), "unlock", "--store="+c.store, "--lock="+lock, "--force", "--yes").CombinedOutput()
	if err == nil && !bytes.Contains(out, []byte("1 deleted")) {
		err = errors.New("nobody held it")
	}
	if err != nil {
		return fmt.Errorf("unlock %s: %w: %s", lock, err, out)
	}
	return nil
}

// A program is a running example.
type program struct {
	t   *testing.T
	cmd *exec.Cmd
	out output // both streams
}

// output may be read while it is written.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// says waits until it has printed this.
func (p *program) says(text string) {
	p.t.Helper()
	for deadline := time.Now().Add(patience); !strings.Contains(p.out.String(), text); {
		if time.Now().After(deadline) {
			p.t.Fatalf("%v does not say %q:\n%s", p.cmd.Args, text, &p.out)
		}
		time.Sleep(time.Millisecond) // real time: for another process
	}
}

func start(t *testing.T, env []string, name string, args ...string) *program {
	t.Helper()
	p := &program{t: t, cmd: exec.CommandContext(t.Context(), name, args...)}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, env...)
	p.cmd.WaitDelay = time.Second // for what a shell leaves behind
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// ends waits for the end, demands an exit code, and returns what was printed.
func (p *program) ends(code int) string {
	p.t.Helper()
	_ = p.cmd.Wait() // the state says it
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.t.Errorf("%v: exit code %d, want %d:\n%s", p.cmd.Args, got, code, &p.out)
	}
	return p.out.String()
}
