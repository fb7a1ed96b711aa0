package redistest

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
)

// A proxyConn is a client's connection and the one to the server that belongs to
// it. Two goroutines work for it: requests reads from the client, replies from
// the server.
type proxyConn struct {
	p       *Proxy
	id      int
	client  *net.TCPConn
	dead    chan struct{} // closed by kill
	mute    atomic.Bool   // nothing goes to the client any more
	db      atomic.Value  // session.db
	session session       // of replies alone

	mu     sync.Mutex    // guards what follows; never held while waiting
	server *net.UnixConn // set once
	queue  []*exchange   // without a whole answer passed on, in order
}

func newProxyConn(p *Proxy, id int, client *net.TCPConn) *proxyConn {
	c := &proxyConn{p: p, id: id, client: client, dead: make(chan struct{}), session: newSession()}
	c.db.Store(c.session.db)
	return c
}

// run blocks until the connection has ended.
func (c *proxyConn) run() {
	defer c.kill(false)
	if !c.p.gates[ToServer].pass(c.dead) || !c.dial() {
		return
	}
	var replies sync.WaitGroup
	replies.Go(c.replies)
	c.requests()
	replies.Wait()
	for _, x := range c.queue {
		x.finish()
	}
}

// dial connects to the server, and returns false if that cannot be.
func (c *proxyConn) dial() bool {
	conn, err := new(net.Dialer).DialContext(c.p.ctx, "unix", c.p.server.Socket())
	if err != nil {
		return false // It is down: the client sees the connection end.
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server = conn.(*net.UnixConn)
	if c.isDead() {
		_ = c.server.Close()
		return false
	}
	return true
}

// kill ends the connection. It does not block.
func (c *proxyConn) kill(reset bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isDead() {
		return
	}
	close(c.dead)
	if reset {
		_ = c.client.SetLinger(0)
	}
	_ = c.client.Close()
	if c.server != nil {
		_ = c.server.Close()
	}
}

func (c *proxyConn) isDead() bool {
	select {
	case <-c.dead:
		return true
	default:
		return false
	}
}

// requests passes requests on until the client leaves, and then passes that on.
func (c *proxyConn) requests() {
	in := newReader(c.client)
	for {
		args, raw, err := in.command()
		if errors.Is(err, errProtocol) {
			c.fail("client: " + err.Error())
		}
		if err != nil {
			break
		}
		if len(args) > 0 && !c.request(Command{Conn: c.id, Args: args}, raw) {
			break
		}
	}
	if c.p.gates[ToServer].pass(c.dead) {
		_ = c.server.CloseWrite() // It may be closed.
	}
}

// fail reports what the proxy cannot handle, and ends the connection.
func (c *proxyConn) fail(text string) {
	c.p.t.Errorf("redistest: proxy: connection %d: %s", c.id, text)
	c.kill(false)
}

// request passes a request on, unless a rule has it otherwise. It returns false
// if no more may follow.
func (c *proxyConn) request(cmd Command, raw []byte) bool {
	switch name := cmd.Name(); {
	case name == "MONITOR", name == "SYNC", name == "PSYNC",
		name == "CLIENT" && len(cmd.Args) > 1 && strings.EqualFold(cmd.Args[1], "REPLY"):
		c.fail("the proxy cannot handle " + strings.Join(cmd.Args, " "))
		return false
	}
	c.p.count(cmd)
	x := &exchange{cmd: cmd, rule: c.p.claim(&c.p.rules, cmd)}
	action := x.action()
	switch action.kind {
	case loseRequest:
		x.strike()
		_, _ = io.Copy(io.Discard, c.client) // until the client leaves
		return false
	case cutRequest:
		c.kill(false)
		x.strike()
		return false
	case replyError:
		x.canned, x.reply = true, []byte(action.text)
		if c.enqueue(x) {
			c.answerFrom(x)
		}
		return true
	case hold:
		x.fire()
		if !action.wait(c.dead) {
			x.finish()
			return false
		}
	}
	if !c.p.gates[ToServer].pass(c.dead) {
		x.finish()
		return false
	}
	c.enqueue(x)
	_, _ = c.server.Write(raw) // If it fails, replies ends the connection.
	if action.kind == duplicate {
		x.rule.count(1, 0)
		db := c.db.Load().(string)
		c.p.wg.Go(func() { c.p.duplicate(x.rule, raw, db) })
	}
	return true
}

// enqueue puts x behind the requests without an answer. It returns true if there
// are none: if the proxy is to answer x, then now.
func (c *proxyConn) enqueue(x *exchange) (alone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = append(c.queue, x)
	return len(c.queue) == 1
}

// oldest returns the oldest request without an answer, or nil.
func (c *proxyConn) oldest() *exchange {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		return nil
	}
	return c.queue[0]
}

// dequeue removes the oldest request, now that its answer was passed on, and
// returns the next, or nil.
func (c *proxyConn) dequeue() *exchange {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = c.queue[1:]
	if len(c.queue) == 0 {
		return nil
	}
	return c.queue[0]
}

// replies passes on what the server sends until it leaves, and then passes that on.
func (c *proxyConn) replies() {
	in := newReader(c.server)
	for {
		m, err := in.next()
		if errors.Is(err, errProtocol) {
			c.fail("server: " + err.Error())
		}
		if err != nil || !c.reply(m) {
			break
		}
	}
	if !c.mute.Load() && c.p.gates[ToClient].pass(c.dead) {
		c.kill(false)
	}
}

// reply passes a message on, if it completes an answer or is none. It returns
// false if no more may follow.
func (c *proxyConn) reply(m message) bool {
	x := c.oldest()
	if !c.session.answers(m, x) {
		x = &exchange{cmd: Command{Conn: c.id, Args: words(m.value)}, reply: m.raw}
		if len(x.cmd.Args) > 0 && !c.mute.Load() {
			x.rule = c.p.claim(&c.p.pushRules, x.cmd)
		}
		return c.answer(x)
	}
	if !c.session.add(x, m) {
		return true
	}
	c.db.Store(c.session.db)
	if e, ok := m.value.(Error); ok && strings.HasPrefix(string(e), "NOSCRIPT") {
		x.giveBack() // The script has not run.
	}
	return c.answerFrom(x)
}

// answerFrom answers x, the oldest request, and then those behind it that the
// proxy itself answers. It returns false if no more may follow.
func (c *proxyConn) answerFrom(x *exchange) bool {
	if !c.answer(x) {
		return false
	}
	for x = c.dequeue(); x != nil && x.canned; x = c.dequeue() {
		if !c.answer(x) {
			return false
		}
	}
	return true
}

// answer passes on the answer, or the message, that x holds, unless its rule has it
// otherwise. It returns false if no more may follow.
func (c *proxyConn) answer(x *exchange) bool {
	action := x.action()
	switch action.kind {
	case drop:
		x.strike()
		return true
	case cutReply:
		c.kill(false)
		x.strike()
		return false
	case loseReply:
		c.mute.Store(true)
		x.strike()
	case hold:
		x.finish()
	case holdReply:
		x.fire()
		defer x.finish()
		if !action.wait(c.dead) {
			return false
		}
	}
	if !c.p.gates[ToClient].pass(c.dead) {
		return false
	}
	if !c.mute.Load() {
		_, _ = c.client.Write(x.reply) // If the client has left, requests sees it.
	}
	if action.kind == pass || action.kind == replyError {
		x.strike()
	}
	return true
}
