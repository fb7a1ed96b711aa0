package api

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-dev/soloist/internal/elector"
	"github.com/soloist-dev/soloist/internal/lease/leasetest"
)

func TestEventsOfLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := pair(t)
		l := a.listen("/events")
		if ct, cc := l.resp.Header.Get("Content-Type"), l.resp.Header.Get("Cache-Control"); ct != "text/event-stream" || cc != "no-store" {
			t.Errorf("Content-Type %q, Cache-Control %q", ct, cc)
		}
		name, id, first := l.event()
		if name != "leader" || id != fmt.Sprint(first.Version) || !first.Leader {
			t.Fatalf("%s %s %+v", name, id, first)
		}
		l.event() // the renewal that comes before a full period has passed
		for range 20 {
			start := time.Now()
			name, id, again := l.event()
			if took := time.Since(start); took > 2050*time.Millisecond || took < 1950*time.Millisecond {
				t.Errorf("renewed after %v", took)
			}
			if name != "leader" || id != fmt.Sprint(first.Version) || again.Fence != first.Fence || again.ValidForMS < 9800 {
				t.Errorf("%s %s %+v", name, id, again)
			}
		}
	})
}

func TestEventsOfStandby(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t)
		l := b.listen("/events")
		if name, _, first := l.event(); name != "standby" || first.Holder != "pod-a" {
			t.Fatalf("%s %+v", name, first)
		}
		for range 10 {
			start := time.Now()
			if block := l.next(); block != ":\n" || time.Since(start) != 2*time.Second {
				t.Errorf("%q after %v", block, time.Since(start))
			}
		}

		start := time.Now()
		if status, text := a.do("POST", "/resign", `{"done":true}`); status != 202 {
			t.Fatal(status, text)
		}
		name, _, now := l.event()
		if took := time.Since(start); name != "leader" || !now.Leader || took > 5*time.Millisecond {
			t.Errorf("%s %+v after %v", name, now, took)
		}
	})
}

// Where no renewal comes, each event says how much is left, nothing but events is sent,
// and the end is told when it comes.
func TestEventsOfLeaderThatCannotRenew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := pair(t)
		l := a.listen("/events")
		_, _, b := l.event()
		start, left := time.Now(), time.Duration(b.ValidForMS)*time.Millisecond
		a.link.SetDown(true)
		for n := 0; ; n++ {
			block := l.next()
			took := time.Since(start)
			if strings.HasPrefix(strings.SplitN(block, "\n", 2)[1], "event: standby") {
				if took < left || took > left+5*time.Millisecond || n < 2 {
					t.Errorf("told after %v, not %v, and %d events: %s", took, left, n, block)
				}
				break
			}
			if want := fmt.Sprintf(`"valid_for_ms":%d,`, (left - took).Milliseconds()); !strings.Contains(block, want) {
				t.Errorf("after %v: %s, want %s", took, block, want)
			}
		}
	})
}

// The end of a belief is told even if whoever should publish it hangs.
func TestEventsOfBeliefThatNobodyEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := leasetest.NewClock(1)
		state := leading().State
		e := says(t, leading())
		e.view = func() elector.View { return state.At(clock.Now()) }
		s := serve(t, Config{Elections: []Election{e}})

		for path, end := range map[string]string{
			"/events": fmt.Sprintf("id: %d\nevent: standby\ndata: {", state.Version+1),
			"/sse":    `data: {"name":"",`,
		} {
			state.Validity.Stamp, state.Validity.For = clock.Now(), 5*time.Second
			start := time.Now()
			l := s.listen(path)
			for took := time.Duration(0); took < 5*time.Second; {
				block := l.next()
				took = time.Since(start)
				if strings.HasPrefix(block, end) != (took == 5*time.Second) {
					t.Errorf("%s after %v: %s", path, took, block)
				}
			}
			l.hang()
		}
	})
}

// A client that does not read is dropped. Neither the election nor other clients wait.
func TestEventsOfSlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := pair(t)
		conn, err := a.net.dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprint(conn, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReaderSize(conn, 16), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		synctest.Wait()
		if n := a.server.streams.Load(); n != 1 {
			t.Errorf("%d streams, want 1", n)
		}

		other := a.listen("/events")
		start := time.Now()
		for n := range 5 {
			if name, _, _ := other.event(); name != "leader" {
				t.Errorf("other: %s", name)
			}
			if took := time.Since(start); took > time.Duration(n)*2010*time.Millisecond {
				t.Errorf("other: event %d after %v", n, took)
			}
		}
		synctest.Wait()
		if n := a.server.streams.Load(); n != 1 {
			t.Errorf("%d streams, want 1: the slow client is to be dropped", n)
		}
		if n := a.elector.Stats().Renewals; n < 4 || n > 6 {
			t.Errorf("%d renewals", n)
		}
	})
}

func TestEventsEndAtShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t)
		l, compatible, other := a.listen("/events"), a.listen("/sse"), b.listen("/events")
		l.event()
		compatible.next()
		start := time.Now()
		a.leave()
		go a.stop()
		var names, reasons []string
		for {
			block := l.next()
			if block == "" {
				break
			}
			names = append(names, strings.SplitN(block, "\n", 3)[1])
			reasons = append(reasons, block[strings.Index(block, `"reason"`):])
		}
		if len(names) == 0 || names[len(names)-1] != "event: standby" || !strings.Contains(reasons[len(reasons)-1], "stopped") {
			t.Errorf("%q %q", names, reasons)
		}
		var last string
		for {
			block := compatible.next()
			if block == "" {
				break
			}
			last = block
		}
		if !strings.HasPrefix(last, `data: {"name":"","last_update":"`) {
			t.Errorf("last: %q", last)
		}
		if took := time.Since(start); took > 100*time.Millisecond {
			t.Errorf("took %v", took)
		}
		for name := ""; name != "leader"; {
			name, _, _ = other.event()
		}
	})
}

func TestEventsOfClientThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, b := pair(t)
		for _, path := range []string{"/events", "/sse"} {
			l := b.listen(path)
			l.next()
			l.hang()
			synctest.Wait()
			if n := b.server.streams.Load(); n != 0 {
				t.Errorf("%s: %d streams left", path, n)
			}
		}
	})
}

func TestHeadOfStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, b := pair(t)
		for _, path := range []string{"/events", "/sse"} {
			start := time.Now()
			if status, text := b.do("HEAD", path, ""); status != 200 || text != "" || time.Since(start) != 0 {
				t.Errorf("%s: %d %q", path, status, text)
			}
		}
	})
}

// A resignation without "done" is told at once. The lease is kept until what was said
// has run out, or the app is done.
func TestEventsOfResignation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t)
		mine, other := a.listen("/events"), b.listen("/events")
		_, _, before := mine.event()
		other.event()
		status, text := a.do("POST", "/resign", "")
		if status != 202 || !strings.Contains(text, `"leader":false`) || !strings.HasSuffix(text, `,"handing_over":true}`+"\n") {
			t.Fatal(status, text)
		}
		if name, _, now := mine.event(); name != "standby" || !now.HandingOver || now.Holder != "" {
			t.Errorf("%s %+v", name, now)
		}
		start := time.Now()
		name, _, now := other.event()
		left := time.Duration(before.ValidForMS) * time.Millisecond
		if took := time.Since(start); name != "leader" || took < left || took > left+10*time.Millisecond {
			t.Errorf("%s %+v after %v, want %v", name, now, took, left)
		}
	})
}
