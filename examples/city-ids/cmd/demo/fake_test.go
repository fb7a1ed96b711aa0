package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/proto"
)

// asSidecar makes this test binary a fake sidecar: each process that a test starts.
const asSidecar = "CITY_IDS_TEST_SIDECAR"

func TestMain(m *testing.M) {
	if os.Getenv(asSidecar) != "" {
		fakeSidecar()
		return
	}
	if err := os.Setenv(asSidecar, "1"); err != nil {
		panic(err)
	}
	m.Run()
}

// fake speaks the sidecar's HTTP, and elects in the simplest way that is correct as long
// as Redis lives.
type fake struct {
	redis               *proto.Client
	lock, token         string
	lease, renew, retry time.Duration

	mu      sync.Mutex
	fence   int64 // 0: not leading
	over    bool  // it has resigned, and campaigns no more: it is about to be stopped
	stamp   time.Time
	version int64
	changed chan struct{}
}

func fakeSidecar() {
	flags := flag.NewFlagSet("elect", flag.ExitOnError)
	f := &fake{token: strconv.Itoa(os.Getpid()), changed: make(chan struct{}), version: time.Now().UnixMicro()}
	store := flags.String("store", "", "")
	flags.StringVar(&f.lock, "lock", "", "")
	flags.DurationVar(&f.lease, "lease-duration", 0, "")
	flags.DurationVar(&f.renew, "renew-deadline", 0, "")
	flags.DurationVar(&f.retry, "retry-period", 0, "")
	address := flags.String("http-address", "", "")
	for _, ignored := range []string{"name", "probe-address", "delayed-restart", "log-format"} {
		flags.String(ignored, "", "")
	}
	_ = flags.Parse(os.Args[2:])

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var err error
	if f.redis, err = proto.Dial(strings.TrimPrefix(*store, "redis://")); err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /leader", f.serveLeader)
	mux.HandleFunc("GET /events", f.serveEvents)
	mux.HandleFunc("POST /resign", func(w http.ResponseWriter, _ *http.Request) {
		f.resign()
		w.WriteHeader(http.StatusAccepted)
	})
	server := &http.Server{Addr: *address, Handler: mux, ReadHeaderTimeout: time.Second}
	go func() { panic(server.ListenAndServe()) }()

	for ctx.Err() == nil {
		f.step()
		sleep(ctx, 5*time.Millisecond)
	}
	f.resign()
}

// step campaigns, or renews when it is time to.
func (f *fake) step() {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	switch {
	case f.fence != 0 && now.Sub(f.stamp) < f.retry:
	case f.fence != 0:
		if f.eval(`if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
			return redis.call('PEXPIRE', KEYS[1], ARGV[2])`) == 1 {
			f.stamp = now
		} else {
			f.fence = 0
		}
		f.tell()
	case !f.over:
		f.fence = f.eval(`if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 0 end
			return redis.call('INCR', KEYS[2])`)
		if f.stamp = now; f.fence != 0 {
			f.tell()
		}
	}
}

func (f *fake) resign() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
	if f.fence != 0 {
		f.eval(`if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end return 0`)
		f.fence = 0
		f.tell()
	}
}

func (f *fake) eval(script string) int64 {
	reply, err := f.redis.Do("EVAL", script, "2", f.lock, f.lock+":fence", f.token,
		strconv.FormatInt(f.lease.Milliseconds(), 10))
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimPrefix(reply, ":")), 10, 64)
	return n
}

// tell wakes all who wait for news. The caller holds mu.
func (f *fake) tell() {
	f.version++
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fake) answer() (leads bool, body string, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	left := f.renew*99/100 - 2*time.Millisecond - time.Since(f.stamp)
	leads = f.fence != 0 && left > 0
	b, _ := json.Marshal(map[string]any{
		"leader": leads, "fence": f.fence, "valid_for_ms": left.Milliseconds(), "version": f.version,
	})
	return leads, string(b), f.changed
}

func (f *fake) serveLeader(w http.ResponseWriter, r *http.Request) {
	leads, body, changed := f.answer()
	if wait, err := time.ParseDuration(r.FormValue("wait")); err == nil &&
		strings.Contains(body, `"version":`+r.FormValue("version")+"}") {
		select {
		case <-changed:
		case <-time.After(wait):
		}
		leads, body, _ = f.answer()
	}
	if !leads {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	fmt.Fprintln(w, body)
}

func (f *fake) serveEvents(w http.ResponseWriter, r *http.Request) {
	for {
		_, body, changed := f.answer()
		fmt.Fprintf(w, "data: %s\n\n", body)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		}
	}
}
