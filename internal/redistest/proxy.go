package redistest

import (
	"context"
	"errors"
	"maps"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"
)

// A Proxy stands between clients and a Server and breaks what the test tells it to.
// It speaks TCP without TLS to clients, and reaches the server over its unix
// socket, whatever Addr demands. Inline requests, MONITOR, CLIENT REPLY and
// replication fail the test. Its methods are safe for concurrent use.
type Proxy struct {
	t      testing.TB
	server *Server
	addr   string
	gates  map[Direction]*gate
	ctx    context.Context // ends with Close
	cancel func()
	wg     sync.WaitGroup // all goroutines

	mu        sync.Mutex // guards what follows
	ln        net.Listener
	refusals  int // calls of Refuse that were not undone
	conns     map[int]*proxyConn
	accepted  int
	counts    map[string]int
	rules     []*Rule
	pushRules []*Rule
}

// NewProxy returns a proxy that works until the end of the test. It ends the test
// if it cannot listen.
func NewProxy(t testing.TB, s *Server) *Proxy {
	t.Helper()
	p := &Proxy{
		t:      t,
		server: s,
		gates:  map[Direction]*gate{ToServer: newGate(), ToClient: newGate()},
		conns:  make(map[int]*proxyConn),
		counts: make(map[string]int),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	var err error
	for range portTries {
		// Not port 0: see randomPort.
		p.addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(randomPort()))
		if err = p.listen(); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatalf("redistest: proxy: %v", err)
	}
	t.Cleanup(func() {
		p.Close()
		if t.Failed() {
			t.Logf("redistest: proxy: %d connections, requests %v, rules %v %v",
				p.Accepted(), p.CommandCounts(), p.rules, p.pushRules)
		}
	})
	return p
}

// Addr returns host:port for clients. It stays the same over Refuse.
func (p *Proxy) Addr() string { return p.addr }

// URL returns redis://[:password@]host:port for clients.
func (p *Proxy) URL() string { return p.server.url("redis", p.addr) }

// Accepted returns how many connections clients have made so far.
func (p *Proxy) Accepted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted
}

// CommandCounts returns how many requests clients have sent so far, by the name of
// the command in capitals. Those that the server never saw count too.
func (p *Proxy) CommandCounts() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.counts)
}

// TotalCommands returns the sum of CommandCounts, of these commands or of all.
func (p *Proxy) TotalCommands(names ...string) int { return total(p.CommandCounts(), names) }

// Close ends all connections and goroutines, and returns when they have ended. The
// end of the test does it too.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.cancel()
	_ = p.ln.Close() // It may be closed already.
	p.mu.Unlock()
	p.end(false)
	p.wg.Wait()
}

// CloseAll resets all connections: clients see ECONNRESET, and what was on its way
// is lost. New connections are accepted. It does not wait.
func (p *Proxy) CloseAll() { p.end(true) }

func (p *Proxy) end(reset bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.kill(reset)
	}
}

// Refuse stops listening, so that clients see ECONNREFUSED, until accept is called.
// Connections that exist go on. Neither blocks; accept fails the test if the port
// was taken meanwhile.
func (p *Proxy) Refuse() (accept func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusals++
	_ = p.ln.Close() // It may be closed already.
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.refusals--
		if p.refusals > 0 || p.ctx.Err() != nil {
			return
		}
		err := p.listen()
		for try := 1; err != nil && try < portTries; try++ {
			<-time.After(10 * time.Millisecond)
			err = p.listen()
		}
		if err != nil {
			p.t.Errorf("redistest: proxy: listen again: %v", err)
		}
	})
}

// listen starts to accept. The caller holds p.mu, or is alone.
func (p *Proxy) listen() error {
	ln, err := new(net.ListenConfig).Listen(p.ctx, "tcp", p.addr)
	if err != nil {
		return err
	}
	p.ln = ln
	p.wg.Go(func() {
		for {
			client, err := ln.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				p.t.Errorf("redistest: proxy: %v", err)
				return
			}
			p.serve(client.(*net.TCPConn))
		}
	})
	return nil
}

func (p *Proxy) serve(client *net.TCPConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		_ = client.Close()
		return
	}
	p.accepted++
	c := newProxyConn(p, p.accepted, client)
	p.conns[c.id] = c
	p.wg.Go(func() {
		c.run()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.conns, c.id)
	})
}

// count counts a request.
func (p *Proxy) count(cmd Command) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[cmd.Name()]++
}

// duplicate sends a request on a connection of its own, when the rule's time has
// come. It blocks until it was answered, or the proxy is closed.
func (p *Proxy) duplicate(rule *Rule, raw []byte, db string) {
	defer rule.count(0, 1)
	if !rule.action.wait(p.ctx.Done()) || !p.gates[ToServer].pass(p.ctx.Done()) {
		return
	}
	w, err := p.server.dialAdmin(p.ctx)
	if err == nil {
		defer w.close()
		if _, err = w.send(appendCommand(nil, []string{"SELECT", db})); err == nil {
			_, err = w.send(raw)
		}
	}
	if err != nil {
		p.t.Logf("redistest: proxy: duplicate: %v", err)
	}
}
