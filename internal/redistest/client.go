package redistest

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	adminUser = "redistest"
	replyTime = 10 * time.Second // for an answer to Do
)

// An admin is the connection that a Server's own requests share.
type admin struct {
	sending sync.Mutex // held for a whole request

	mu   sync.Mutex // guards what follows, and is never held while waiting
	wire *wire
	own  map[string]int // requests since the server has started
}

// close ends the connection and forgets what was counted: the server is gone.
func (a *admin) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.wire != nil {
		a.wire.close()
	}
	a.wire, a.own = nil, nil
}

// drop closes a connection that failed.
func (a *admin) drop(w *wire) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.wire == w {
		a.wire = nil
	}
	w.close()
}

// Do sends a request over the unix socket, as a user who may do everything, and
// returns the answer: nil, a string, int64, float64, bool, or []any of these (for
// a map, its keys and values in turn). An error that the server answered is an
// [Error]. Arguments are written as fmt.Sprint does, a []byte as it is. Do blocks
// for at most 10 s; other calls wait for it.
func (s *Server) Do(args ...any) (any, error) {
	texts := make([]string, len(args))
	for i, arg := range args {
		if b, ok := arg.([]byte); ok {
			arg = string(b)
		}
		texts[i] = fmt.Sprint(arg)
	}
	s.admin.sending.Lock()
	defer s.admin.sending.Unlock()
	return s.request(texts)
}

// request is Do for a caller that holds s.admin.sending.
func (s *Server) request(args []string) (any, error) {
	w, err := s.adminWire()
	if err != nil {
		return nil, err
	}
	m, err := w.send(appendCommand(nil, args))
	if err != nil {
		s.admin.drop(w)
		return nil, fmt.Errorf("redistest: %s: %w", args[0], err)
	}
	s.countOwn(args, m)
	if e, ok := m.value.(Error); ok {
		return nil, e
	}
	return m.value, nil
}

// Must is Do for requests that cannot fail. It ends the test on an error.
func (s *Server) Must(args ...any) any {
	s.t.Helper()
	v, err := s.Do(args...)
	if err != nil {
		s.t.Fatalf("redistest: %v: %v", args, err)
	}
	return v
}

func (s *Server) adminWire() (*wire, error) {
	a := &s.admin
	a.mu.Lock()
	w := a.wire
	a.mu.Unlock()
	if w != nil {
		return w, nil
	}
	w, err := s.dialAdmin(context.Background())
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wire = w
	return w, err
}

// dialAdmin returns a new connection that may do everything and ends with ctx.
func (s *Server) dialAdmin(ctx context.Context) (*wire, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", s.Socket())
	if err != nil {
		return nil, err
	}
	w := &wire{conn: conn, in: newReader(conn)}
	w.release = context.AfterFunc(ctx, func() { _ = conn.Close() })
	auth := []string{"AUTH", adminUser, s.adminPassword}
	m, err := w.send(appendCommand(nil, auth))
	if e, ok := m.value.(Error); ok {
		err = e
	}
	if err != nil {
		w.close()
		return nil, err
	}
	s.countOwn(auth, m)
	return w, nil
}

// countOwn counts a request of ours that was answered, for CommandCounts. While it
// is loading its data the server itself counts none.
func (s *Server) countOwn(args []string, answer message) {
	if e, ok := answer.value.(Error); ok && strings.HasPrefix(string(e), "LOADING") {
		return
	}
	name := strings.ToUpper(args[0])
	sub := name
	if len(args) > 1 {
		sub += "|" + strings.ToUpper(args[1])
	}
	s.admin.mu.Lock()
	defer s.admin.mu.Unlock()
	if s.admin.own == nil || sub == "CONFIG|RESETSTAT" {
		s.admin.own = make(map[string]int)
	}
	s.admin.own[name]++
	if sub != name { // Redis 7 counts CONFIG|GET, Redis 6 counts CONFIG.
		s.admin.own[sub]++
	}
}

// A wire is a connection on which each request waits for the answer to the last.
type wire struct {
	conn    net.Conn
	in      *reader
	release func() bool // of its context
}

// send sends a request and blocks for at most replyTime. It passes over pushes.
func (w *wire) send(request []byte) (message, error) {
	if err := w.conn.SetDeadline(time.Now().Add(replyTime)); err != nil {
		return message{}, err
	}
	if _, err := w.conn.Write(request); err != nil {
		return message{}, err
	}
	for {
		m, err := w.in.next()
		if err != nil || m.kind != '>' {
			return m, err
		}
	}
}

func (w *wire) close() {
	w.release()
	_ = w.conn.Close()
}

// Info returns a section of INFO, or all of them for "everything", as a map from
// field to value. It ends the test if the server does not answer.
func (s *Server) Info(section string) map[string]string {
	s.t.Helper()
	text, _ := s.Must("INFO", section).(string)
	return parseInfo(text)
}

func parseInfo(text string) map[string]string {
	fields := make(map[string]string)
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[k] = v
		}
	}
	return fields
}

// CommandCounts returns how often the server has run each command since it was
// started, by its name in capitals ("EVALSHA", "CONFIG|GET"), without those that
// Do has sent. What scripts call counts too: see [Proxy.CommandCounts] for what
// the clients have sent. It ends the test if the server does not answer.
func (s *Server) CommandCounts() map[string]int {
	s.t.Helper()
	s.admin.sending.Lock() // so that no other request of ours is counted, or not
	defer s.admin.sending.Unlock()
	v, err := s.request([]string{"INFO", "commandstats"})
	text, ok := v.(string)
	if !ok {
		s.t.Fatalf("redistest: INFO: %v %v", v, err)
	}
	counts := make(map[string]int)
	for k, v := range parseInfo(text) {
		name, ok := strings.CutPrefix(k, "cmdstat_")
		calls, _, _ := strings.Cut(strings.TrimPrefix(v, "calls="), ",")
		n, err := strconv.Atoi(calls)
		if !ok || err != nil {
			continue
		}
		name = strings.ToUpper(name)
		if n -= s.admin.ownCount(name); n > 0 {
			counts[name] = n
		}
	}
	return counts
}

// ownCount returns how many of our requests the server's statistics contain.
func (a *admin) ownCount(name string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if name == "INFO" {
		return a.own[name] - 1 // It is asking with the last.
	}
	return a.own[name]
}

// TotalCommands returns the sum of CommandCounts, of these commands or of all.
func (s *Server) TotalCommands(names ...string) int {
	s.t.Helper()
	return total(s.CommandCounts(), names)
}

func total(counts map[string]int, names []string) (n int) {
	if len(names) == 0 {
		for _, c := range counts {
			n += c
		}
	}
	for _, name := range names {
		n += counts[strings.ToUpper(name)]
	}
	return n
}

// Clients returns the number of connected clients, without the connections of
// this package itself. It ends the test if the server does not answer.
func (s *Server) Clients() int {
	s.t.Helper()
	list, _ := s.Must("CLIENT", "LIST").(string)
	n := 0
	for line := range strings.Lines(list) {
		if !strings.Contains(line, " user="+adminUser+" ") {
			n++
		}
	}
	return n
}

// WaitClients waits until Clients returns n, for the server takes a moment to see
// that a connection was closed. It ends the test after 10 s.
func (s *Server) WaitClients(n int) {
	s.t.Helper()
	deadline := time.Now().Add(replyTime)
	for got := s.Clients(); got != n; got = s.Clients() {
		if time.Now().After(deadline) {
			s.t.Fatalf("redistest: %d clients are connected, not %d:\n%v", got, n, s.Must("CLIENT", "LIST"))
		}
		<-time.After(time.Millisecond)
	}
}
