package redistest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"
)

const (
	startLimit = 30 * time.Second // for a server to answer, on a busy machine
	portTries  = 50
	logShown   = 8 << 10 // bytes of the log shown when a test fails
)

// errPortTaken tells a launch that failed because another socket has the port.
var errPortTaken = errors.New("port taken")

// A Server is one Redis process, which may be stopped and started again on the
// same address and with the same data directory. Its methods are safe for
// concurrent use.
type Server struct {
	t             testing.TB
	bin           string
	major         int // of the server's version
	dir           string
	cfg           config
	certs         certs
	log           *os.File
	port          int // does not change once Start has returned
	adminPassword string

	mu   sync.Mutex // guards proc, and is held while it changes
	proc *process   // the latest; nil before the first

	admin admin
}

// Start runs a Redis server until the end of the test and returns when it answers.
// Without options it keeps nothing on disk. When the test fails it shows the end
// of the server's log. Start ends the test if the server cannot be started.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	s := &Server{t: t, cfg: config{port: randomPort}, adminPassword: rand.Text()}
	for _, opt := range opts {
		opt(&s.cfg)
	}
	if err := s.prepare(); err != nil {
		t.Fatalf("redistest: %v", err)
	}
	t.Cleanup(s.cleanup)
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	for range portTries {
		s.port = s.cfg.port()
		if err = s.launch(); !errors.Is(err, errPortTaken) {
			break
		}
	}
	if err != nil {
		t.Fatalf("redistest: start: %v", err)
	}
	return s
}

// prepare finds the binary and makes the directory with all that does not depend
// on the port.
func (s *Server) prepare() (err error) {
	if s.bin, s.major, err = findServer(s.t.Context()); err != nil {
		return err
	}
	// The path of a unix socket has at most 103 bytes: t.TempDir, which contains
	// the test's name, may be too long, and so may TMPDIR.
	base := os.TempDir()
	if len(base) > 80 {
		base = "/tmp"
	}
	if s.dir, err = os.MkdirTemp(base, "redistest"); err != nil {
		return err
	}
	switch {
	case s.cfg.certs != nil:
		s.certs = *s.cfg.certs
	case s.cfg.tls:
		if s.certs, err = makeCerts(s.dir); err != nil {
			return errors.Join(err, os.RemoveAll(s.dir))
		}
	}
	s.log, err = os.OpenFile(filepath.Join(s.dir, "redis.log"), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return errors.Join(err, os.RemoveAll(s.dir))
	}
	return nil
}

// findServer returns the server's binary and major version. The environment
// variable REDISTEST_SERVER names another one than that of the PATH.
func findServer(ctx context.Context) (bin string, major int, err error) {
	names := []string{"redis-server", "valkey-server"}
	if name := os.Getenv("REDISTEST_SERVER"); name != "" {
		names = []string{name}
	}
	for _, name := range names {
		if bin, err = exec.LookPath(name); err == nil {
			break
		}
	}
	if err != nil {
		return "", 0, fmt.Errorf("no Redis to test with (%w): install the package redis-server or valkey-server "+
			"(on Alpine and Homebrew: redis or valkey), or name a binary in REDISTEST_SERVER; then `make test`", err)
	}
	out, err := exec.CommandContext(ctx, bin, "--version").Output()
	if err != nil {
		return "", 0, fmt.Errorf("%s --version: %w", bin, err)
	}
	found := regexp.MustCompile(`v=(\d+)\.`).FindSubmatch(out)
	if found == nil {
		return "", 0, fmt.Errorf("%s --version: no version in %q", bin, out)
	}
	major, err = strconv.Atoi(string(found[1]))
	return bin, major, err
}

// randomPort returns a port below the range from which the kernel takes the local
// ports of outgoing connections. One of these might else take the port while the
// server is down; a client that redials it might even connect to itself.
func randomPort() int { return 15000 + mathrand.IntN(15000) }

// launch starts a process and waits until it answers. The caller holds s.mu.
func (s *Server) launch() error {
	if err := s.writeConfig(); err != nil {
		return err
	}
	from, err := s.log.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	// Not the test's context, which ends before the cleanups that may need the server.
	cmd := exec.CommandContext(context.Background(), s.bin, append([]string{s.confFile()}, s.cfg.args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, s.log, s.log
	proc, err := startProcess(cmd)
	if err != nil {
		return err
	}
	s.proc = proc
	late := time.NewTimer(startLimit)
	defer late.Stop()
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	for {
		// Over the socket in our own directory: nobody else answers there.
		_, err := s.Do("PING")
		if err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-proc.done:
			log := s.logFrom(from)
			if bytes.Contains(bytes.ToLower(log), []byte("address already in use")) {
				err = errPortTaken
			}
			return fmt.Errorf("%s ended: %w\n%s", s.bin, err, log)
		case <-late.C:
			proc.kill()
			return fmt.Errorf("%s does not answer: %w\n%s", s.bin, err, s.logFrom(from))
		}
	}
}

// logFrom returns the log from an offset on, or the end of that if it is long.
func (s *Server) logFrom(from int64) []byte {
	text, err := os.ReadFile(s.log.Name())
	if err != nil {
		return []byte(err.Error())
	}
	return text[max(min(int(from), len(text)), len(text)-logShown):]
}

func (s *Server) cleanup() {
	s.Kill()
	if s.t.Failed() {
		s.t.Logf("redistest: end of the log of %s at %s:\n%s", s.bin, s.Addr(), s.logFrom(0))
	}
	if err := errors.Join(s.log.Close(), os.RemoveAll(s.dir)); err != nil {
		s.t.Errorf("redistest: %v", err)
	}
}

func (s *Server) confFile() string { return filepath.Join(s.dir, "redis.conf") }

// Addr returns host:port, which stays the same over Restart. It speaks TLS if
// the option TLS was given.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Socket returns the path of the unix socket. It never speaks TLS.
func (s *Server) Socket() string { return filepath.Join(s.dir, "sock") }

// URL returns redis://[:password@]host:port, or rediss:// with TLS.
func (s *Server) URL() string {
	scheme := "redis"
	if s.cfg.tls {
		scheme = "rediss"
	}
	return s.url(scheme, s.Addr())
}

func (s *Server) url(scheme, addr string) string {
	u := url.URL{Scheme: scheme, Host: addr}
	if s.cfg.password != "" {
		u.User = url.UserPassword("", s.cfg.password)
	}
	return u.String()
}
