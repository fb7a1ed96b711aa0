package api

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/soloist-dev/soloist/internal/elector"
	"github.com/soloist-dev/soloist/internal/lease"
)

const (
	maxHeader     = 16 << 10
	maxBody       = 64 << 10
	maxStreams    = 256
	headerTimeout = 5 * time.Second
	bodyTimeout   = 5 * time.Second // from the end of the header
	writeTimeout  = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	stopTimeout   = 2 * time.Second
)

// An Election is what the server tells about.
type Election interface {
	// View returns what the election says now. It does not block.
	View() elector.View
	// Subscribe wakes a reader at each change and renewal.
	Subscribe() *elector.Subscription
	// Resign ends the term; it fails with elector.ErrNotLeading where there is none.
	Resign(ctx context.Context, r elector.Resignation) error
	// Drain says that the pod is about to end. It does not block.
	Drain()
	Vitals
}

// Vitals are for people, and for the pace of a stream. They do not block.
type Vitals interface {
	Timing() lease.Timing
	Stats() elector.Stats
	Overdue() time.Duration
}

var _ Election = (*elector.Elector)(nil)

// Config says what a Server tells about. The zero Config is usable: nothing is elected.
type Config struct {
	Elections []Election   // the compatible endpoints tell about the first
	Version   string       // of the program
	Locks     JobLocks     // nil: none, and no rates
	Store     Inspector    // of the locks
	Limiter   Limiter      // nil: the store keeps no rates
	Dapr      bool         // answer what Dapr's clients ask about Locks, and nothing else
	Heartbeat func()       // takes in a sign of life of the app; nil: none is asked for
	Log       *slog.Logger // nil: discard
}

// A Server answers the app. Its methods are safe for concurrent use.
type Server struct {
	cfg     Config
	log     *slog.Logger
	mux     *http.ServeMux
	http    http.Server
	foreign *http.CrossOriginProtection
	dapr    daprLocks
	streams atomic.Int64  // open streams and long polls
	unused  sync.Map      // net.Conn to nothing: those on which no request has come yet
	closing chan struct{} // closed when streams and long polls are to end
	close   func()        // closes closing, once
}

// New returns a Server that has yet to Serve.
func New(c Config) *Server {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		cfg:     c,
		log:     c.Log,
		mux:     http.NewServeMux(),
		foreign: http.NewCrossOriginProtection(),
		closing: make(chan struct{}),
	}
	s.close = sync.OnceFunc(func() { close(s.closing) })
	s.http = http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: headerTimeout,
		WriteTimeout:      writeTimeout, // streams and long polls set their own
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(c.Log.Handler(), slog.LevelWarn),
		ConnState:         s.track,
		// No ReadTimeout: it would end streams. Bodies have their own; see guard.
	}
	if c.Dapr {
		s.daprRoutes()
	} else {
		s.route()
	}
	return s
}

// route says what is where. A pattern names its method, and GET means HEAD too; fallback
// answers what no pattern matches.
func (s *Server) route() {
	s.mux.HandleFunc("GET /leader", s.leader)
	s.mux.HandleFunc("GET /events", s.events)
	s.mux.HandleFunc("GET /status", s.status)
	s.mux.HandleFunc("POST /resign", s.resign)
	s.mux.HandleFunc("POST /drain", s.drain)
	s.mux.HandleFunc("POST /heartbeat", s.heartbeat)

	if s.cfg.Locks != nil {
		s.mux.HandleFunc("GET /locks", s.locks)
		s.mux.HandleFunc("GET /locks/{name...}", s.look)
		s.mux.HandleFunc("POST /locks/{name...}", s.postLock)
		s.mux.HandleFunc("PUT /locks/{name...}", s.renew)
		s.mux.HandleFunc("DELETE /locks/{name...}", s.release)
		s.mux.HandleFunc("POST /rate/{name...}", s.rate)
	}

	s.mux.HandleFunc("GET /{$}", s.name)
	s.mux.HandleFunc("GET /isLeader", s.isLeader)
	s.mux.HandleFunc("GET /sse", s.sse)
	s.mux.HandleFunc("GET /api/leader", s.apiLeader)

	s.mux.HandleFunc("/", s.fallback)
}

// Handler returns what answers requests.
func (s *Server) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead && !s.guard(w, r) {
			return
		}
		if p := r.URL.EscapedPath(); p != "/" && path.Clean(p) != p {
			fail(w, http.StatusNotFound, "not_found", "there is nothing here; did you mean "+path.Clean("/"+p)+"?")
			return // the mux would redirect
		}
		s.mux.ServeHTTP(w, r)
	})
}

// fallback answers what no route does: 405 if another method would find one, else 404.
func (s *Server) fallback(w http.ResponseWriter, r *http.Request) {
	var allow []string
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete} {
		probe := http.Request{Method: method, URL: r.URL, Host: r.Host}
		if _, pattern := s.mux.Handler(&probe); pattern != "/" {
			allow = append(allow, method)
		}
	}
	if len(allow) == 0 {
		fail(w, http.StatusNotFound, "not_found", "there is nothing here")
		return
	}
	list := strings.Join(allow, ", ")
	w.Header().Set("Allow", list)
	fail(w, http.StatusMethodNotAllowed, "method", "this path knows "+list)
}

// Serve answers on all listeners, which it closes in the end. It returns nil after
// Shutdown; if a listener fails, it ends all others and returns the error. Call it once.
func (s *Server) Serve(listeners ...net.Listener) error {
	failed := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { failed <- s.http.Serve(l) }() // received below
	}
	var first error
	for range listeners {
		if err := <-failed; !errors.Is(err, http.ErrServerClosed) && first == nil {
			first = err
			s.close()
			_ = s.http.Close() // of the listeners: err says more
		}
	}
	return first
}

// Shutdown ends streams with a last event and long polls with an answer, lets requests
// under way finish, and closes everything. It takes two seconds at most, and less if ctx
// is done before; then it breaks off what is still under way, and returns an error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.close()
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	s.unused.Range(func(conn, _ any) bool {
		conn.(net.Conn).Close()
		return true
	})
	err := s.http.Shutdown(ctx)
	if err != nil {
		_ = s.http.Close() // err says more
	}
	return err
}

// track knows the connections that clients opened in advance. http.Server.Shutdown waits
// for a request on each, for five seconds.
func (s *Server) track(conn net.Conn, state http.ConnState) {
	if state == http.StateNew {
		s.unused.Store(conn, nil)
	} else {
		s.unused.Delete(conn)
	}
}

// enter counts a stream or a long poll in, or refuses it. What is let in calls leave.
func (s *Server) enter(w http.ResponseWriter) bool {
	if s.streams.Add(1) <= maxStreams {
		return true
	}
	s.leave()
	w.Header().Set("Retry-After", "1")
	fail(w, http.StatusServiceUnavailable, "busy", "too many streams and long polls are open: does the app close them?")
	return false
}

func (s *Server) leave() { s.streams.Add(-1) }
