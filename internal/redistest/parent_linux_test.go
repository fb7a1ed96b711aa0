package redistest

import (
	"bufio"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A test binary that dies without its cleanups, as on a timeout, takes the server
// with it. It runs itself to die.
func TestDiesWithParent(t *testing.T) {
	const inChild = "REDISTEST_CHILD"
	if os.Getenv(inChild) != "" {
		if _, err := os.Stdout.WriteString("addr " + Start(t).Addr() + "\n"); err != nil {
			t.Fatal(err)
		}
		select {} // until it is killed
	}
	t.Parallel()
	CheckLeaks(t)
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDiesWithParent$")
	child.Env = append(os.Environ(), inChild+"=1", "TMPDIR="+t.TempDir())
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), "addr ")
	if err != nil || !ok {
		t.Fatalf("%q, %v", line, err)
	}
	dial(t, addr).do("PING", "PONG")
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	for deadline := time.Now().Add(waitLimit); ; {
		c, err := net.Dial("tcp", addr)
		if errors.Is(err, syscall.ECONNREFUSED) {
			return
		}
		if err == nil {
			_ = c.Close()
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server at %s outlives its parent", addr)
		}
		<-time.After(5 * time.Millisecond)
	}
}
