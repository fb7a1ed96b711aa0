package health

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/soloist-dev/soloist/internal/elector"
	"github.com/soloist-dev/soloist/internal/lease"
)

// Elector is what is read of an election. Its methods do not block.
type Elector interface {
	View() elector.View
	Overdue() time.Duration
	Timing() lease.Timing
}

var _ Elector = (*elector.Elector)(nil)

// Config configures a Server. Address is required.
type Config struct {
	Address   string // host:port
	Elections []Elector
	// OnLeader: /readyz is 200 on the leader alone.
	OnLeader bool
	Metrics  http.Handler // nil: /metrics is 404
	Log      *slog.Logger // nil: discard
}

// Server answers /livez, /readyz and /metrics. Call Listen, then Serve; its methods are
// safe for concurrent use after Listen.
type Server struct {
	cfg      Config
	http     http.Server
	listener net.Listener
}

// New returns a Server that has yet to Listen.
func New(c Config) *Server {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{cfg: c}
	s.http = http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       5 * time.Second,
		WriteTimeout:      10 * time.Second,
		IdleTimeout:       2 * time.Minute, // longer than most scrape intervals
		MaxHeaderBytes:    8 << 10,
		ErrorLog:          slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug), // whatever a port scanner sends
	}
	return s
}

// Listen binds the address. Connections wait until Serve.
func (s *Server) Listen(ctx context.Context) error {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", s.cfg.Address)
	if err != nil {
		return err // it names the address
	}
	s.listener = l
	return nil
}

// Addr returns what Listen has bound.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Serve answers until Shutdown, and then returns nil at once.
func (s *Server) Serve() error {
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown stops listening and waits for requests under way, until ctx is done; then it
// cuts them off.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	s.listener.Close() // Serve may never have been called
	if err != nil {
		s.http.Close()
	}
	return err
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux() // GET serves HEAD too; other methods get 405
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { answer(w, Live(s.elections())) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, Ready(s.elections(), s.cfg.OnLeader))
	})
	if s.cfg.Metrics != nil {
		mux.Handle("GET /metrics", s.cfg.Metrics)
	}
	return mux
}

// elections reads all elections now.
//
// A loop that hangs for a lease has lost it: ending the process then costs no more than
// what has happened already, and before that it would.
func (s *Server) elections() []Election {
	all := make([]Election, len(s.cfg.Elections))
	for i, e := range s.cfg.Elections {
		all[i] = Election{View: e.View(), Overdue: e.Overdue(), Bound: e.Timing().LeaseDuration}
	}
	return all
}

func answer(w http.ResponseWriter, j Judgement) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	if !j.OK {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = io.WriteString(w, j.Text) // a prober that has gone needs no answer
}
