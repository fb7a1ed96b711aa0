package jobs

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/soloist-dev/soloist/internal/redistest"
)

// contains demands patterns of a text.
func contains(t *testing.T, text string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		if !regexp.MustCompile(p).MatchString(text) {
			t.Errorf("no %q in:\n%s", p, text)
		}
	}
}

func TestFlashSale(t *testing.T) {
	s := redistest.Start(t)
	a, b := startSidecar(t, s, "a"), startSidecar(t, s, "b")
	out := start(t, nil, binary("flash-sale"), "-sidecar="+a.url, "-sidecar="+b.url, "-items=100", "-buyers=16").ends(0)
	contains(t, out, `one lock: 5 buyers, 2 items, 2 sold`, `one lock: 16 buyers, 100 items, 100 sold`,
		`20 segments: 16 buyers, 100 items, 100 sold`)
	t.Log("\n" + out)
	t.Log(start(t, nil, binary("flash-sale"), "-lock=false").ends(0)) // how many is left to chance
}

// A buyer whose lock is taken away while it pays sells nothing.
func TestFlashSaleIsFenced(t *testing.T) {
	t.Parallel()
	a := startSidecar(t, redistest.Start(t), "a")
	p := start(t, nil, binary("flash-sale"), "-sidecar="+a.url, "-items=0", "-pay=1s")
	a.awaitHolder(t, "flash-sale/few")
	if err := a.take("flash-sale/few"); err != nil {
		t.Error(err)
	}
	contains(t, p.ends(0), `5 buyers, 2 items, 2 sold \(1 late\)`)
}

func TestCoupon(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	a, b := startSidecar(t, s, "a"), startSidecar(t, s, "b")
	out := start(t, nil, binary("coupon"), "-sidecar="+a.url, "-sidecar="+b.url, "-users=2", "-requests=20").ends(0)
	for _, user := range []string{"user-1", "user-2"} {
		contains(t, out, user+`@example.org: 20 requests: 1 given, .*: has \[coupon-\d+\]\n`)
	}
}

// The sidecar says 503 twice, and the lock is taken away from who adds the first coupon:
// that coupon is taken back, and there is one in the end.
func TestCouponInTrouble(t *testing.T) {
	t.Parallel()
	a := startSidecar(t, redistest.Start(t), "a")
	var posts, deletes atomic.Int32
	front := proxy(t, a, func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.Method == http.MethodPost && posts.Add(1) <= 2:
			http.Error(w, `{"error":"unknown","message":"the store did not answer"}`, http.StatusServiceUnavailable)
			return true
		case r.Method == http.MethodDelete && deletes.Add(1) == 1:
			if err := a.take(strings.TrimPrefix(r.URL.Path, "/locks/")); err != nil {
				t.Error(err)
			}
		}
		return false
	})
	out := start(t, nil, binary("coupon"), "-sidecar="+front, "-users=1", "-requests=20").ends(0)
	contains(t, out, `20 requests: 1 given, \d+ had one, [1-9]\d* to ask again: has \[coupon-\d+\]\n`)
	if posts.Load() < 22 {
		t.Errorf("%d asks, want 2 more than requests at least", posts.Load())
	}
}

// proxy returns the URL of a way to a sidecar on which before is asked of each request. It
// says whether it has answered.
func proxy(t *testing.T, to *sidecar, before func(http.ResponseWriter, *http.Request) bool) string {
	t.Helper()
	u, err := url.Parse(to.url)
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(u)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !before(w, r) {
			forward.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestPoll(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	a, b := startSidecar(t, s, "a"), startSidecar(t, s, "b")
	args := []string{"-sidecar=" + a.url, "-sidecar=" + b.url, "-pollers=4", "-events=6"}
	out := start(t, nil, binary("poll"), args...).ends(0)
	for _, event := range []string{"event-1", "event-2", "event-3", "event-4", "event-5", "event-6"} {
		if n := strings.Count(out, event+": poller"); n != 1 && (event != "event-2" || n != 2) {
			t.Errorf("%d tries of %s", n, event)
		}
		if n := len(regexp.MustCompile(event+`: poller-\d fires it`).FindAllString(out, -1)); n != 1 {
			t.Errorf("%s was fired %d times:\n%s", event, n, out)
		}
	}
	contains(t, out, `event-2: poller-\d fails`, `4 pollers, 6 events, 6 fired`)
	contains(t, start(t, nil, binary("poll"), args...).ends(0), `^4 pollers, 6 events, 0 fired`)
}

func TestNightly(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	file := filepath.Join(t.TempDir(), "report")
	cluster := func(name string) *program {
		return start(t, []string{
			"SOLOIST_STORE=" + s.URL(), "SOLOIST_DELAYED_RESTART=off", "SOLOIST_LOG_LEVEL=info", "SIDECAR=" + binary("sidecar"), "CLUSTER=" + name,
		}, "sh", "nightly/nightly.sh", file)
	}
	first, second := cluster("berlin"), cluster("paris")
	said := first.ends(0) + second.ends(0) + cluster("rome").ends(0)
	if n := strings.Count(said, "skipped"); n != 2 {
		t.Errorf("%d were skipped, want 2:\n%s", n, said)
	}
	report, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, string(report), `^report of (berlin|paris), with fence \d+\n$`)
}
