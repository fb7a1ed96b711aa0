package api

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-dev/soloist/internal/elector"
	"github.com/soloist-dev/soloist/internal/lease/leasetest"
)

// pair is two pods of which the first leads, for a second.
func pair(t *testing.T) (leader, standby *pod) {
	memory := leasetest.NewMemory(leasetest.Config{})
	leader = newPod(t, memory, "pod-a")
	synctest.Wait()
	standby = newPod(t, memory, "pod-b")
	time.Sleep(time.Second)
	synctest.Wait()
	return leader, standby
}

func TestPollOfStandby(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t)
		status, now := b.get("/leader?wait=20s")
		if status != 503 || now.State != "standby" || now.Holder != "pod-a" {
			t.Fatalf("%d %+v", status, now)
		}
		path := fmt.Sprint("/leader?wait=20s&version=", now.Version)

		start := time.Now()
		if status, again := b.get(path); status != 503 || again != now || time.Since(start) != 20*time.Second {
			t.Errorf("no change: %d %+v after %v", status, again, time.Since(start))
		}

		start = time.Now()
		go func() {
			time.Sleep(3 * time.Second)
			if status, _ := a.do("POST", "/resign", `{"done":true}`); status != http.StatusAccepted {
				t.Errorf("resign: %d", status)
			}
		}()
		status, changed := b.get(path)
		if status != 200 || !changed.Leader || changed.Version <= now.Version || changed.Fence <= now.Fence {
			t.Errorf("after a hand-over: %d %+v", status, changed)
		}
		if took := time.Since(start); took < 3*time.Second || took > 3*time.Second+5*time.Millisecond {
			t.Errorf("told after %v", took)
		}
	})
}

// A client that counts from before its question, asks again as soon as it is answered,
// and never has a gap in what it believes, as long as renewals come.
func TestPollOfLeaderLeavesNoGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := pair(t)
		var version int64
		var until time.Time
		for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); {
			asked := time.Now()
			status, b := a.get(fmt.Sprintf("/leader?wait=1m&version=%d", version))
			if status != 200 {
				t.Fatalf("%d %+v", status, b)
			}
			took := time.Since(asked)
			if !until.IsZero() && !time.Now().Before(until) {
				t.Fatalf("answered after %v, when what was known had run out", took)
			}
			if version != 0 && (took < 2*time.Second || took > 4949*time.Millisecond) {
				t.Errorf("answered after %v", took)
			}
			version, until = b.Version, asked.Add(time.Duration(b.ValidForMS)*time.Millisecond)
		}
	})
}

func TestPollOfLeaderThatCannotRenew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := pair(t)
		_, b := a.get("/leader")
		a.link.SetDown(true)
		end := time.Now().Add(time.Duration(b.ValidForMS+1) * time.Millisecond)
		for n := 0; b.Leader; n++ {
			if n > 40 || time.Now().After(end) {
				t.Fatalf("%d answers, %v after the end: %+v", n, time.Since(end), b)
			}
			_, b = a.get(fmt.Sprintf("/leader?wait=1m&version=%d", b.Version))
		}
		if before := time.Until(end); before > 3*time.Millisecond || b.Reason != "expired" {
			t.Errorf("%v before the end: %+v", before, b)
		}
	})
}

func TestPollEndsAtShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, b := pair(t)
		_, now := b.get("/leader")
		answers := make(chan int)
		for range 3 {
			go func() {
				status, _ := b.get(fmt.Sprint("/leader?wait=1m&version=", now.Version))
				answers <- status
			}()
		}
		synctest.Wait()
		start := time.Now()
		b.leave() // changes the version: polls are answered by that, too
		go b.stop()
		for range 3 {
			if status := <-answers; status != 503 {
				t.Error(status)
			}
		}
		if took := time.Since(start); took > 10*time.Millisecond {
			t.Errorf("took %v", took)
		}

		v := following()
		s := serve(t, Config{Elections: []Election{says(t, v)}})
		go func() {
			status, _ := s.get(fmt.Sprint("/leader?wait=1m&version=", v.Version))
			answers <- status
		}()
		synctest.Wait()
		go s.stop()
		if status := <-answers; status != 503 {
			t.Error(status)
		}
	})
}

func TestPollOfClientThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, b := pair(t)
		_, now := b.get("/leader")
		ctx, cancel := context.WithCancel(t.Context())
		r, _ := http.NewRequestWithContext(ctx, "GET", fmt.Sprint("http://localhost/leader?wait=1m&version=", now.Version), nil)
		done := make(chan error)
		go func() { _, err := b.client.Do(r); done <- err }()
		synctest.Wait()
		if n := b.server.streams.Load(); n != 1 {
			t.Errorf("%d polls, want 1", n)
		}
		cancel()
		<-done
		synctest.Wait()
		if n := b.server.streams.Load(); n != 0 {
			t.Errorf("%d polls left", n)
		}
	})
}

func TestTooManyStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := following()
		s := serve(t, Config{Elections: []Election{says(t, v)}})
		poll := fmt.Sprint("/leader?wait=1m&version=", v.Version)
		var streams []*listener
		s.server.streams.Add(maxStreams - 2)
		for range 2 {
			streams = append(streams, s.listen("/events"))
		}
		for _, path := range []string{"/events", "/sse", poll} {
			status, text := s.do("GET", path, "")
			if status != 503 || text != `{"error":"busy","message":"too many streams and long polls are open: does the app close them?"}`+"\n" {
				t.Errorf("%s: %d %s", path, status, text)
			}
		}
		if status, text := s.do("GET", "/leader", ""); status != 503 || text != standbyBody+"\n" {
			t.Errorf("a plain question: %d %s", status, text)
		}
		streams[1].hang()
		synctest.Wait()
		if status, text := s.do("GET", poll, ""); status != 503 || text != standbyBody+"\n" {
			t.Errorf("after one has left: %d %s", status, text)
		}
	})
}

// A clock jump makes the leader unknown at once, and a leader again when a renewal has come.
func TestClockJump(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := pair(t)
		_, before := a.get("/leader")
		a.link.SetFates(func(leasetest.Call) leasetest.Fate { return leasetest.Fate{ReplyDelay: 100 * time.Millisecond} })
		a.clock.StepWall(time.Minute)
		status, b := a.get("/leader")
		if status != 503 || b.State != string(elector.Unknown) || b.Reason != string(elector.Unverified) || b.Holder != "" {
			t.Errorf("after the jump: %d %+v", status, b)
		}
		status, b = a.get(fmt.Sprintf("/leader?wait=10s&version=%d", b.Version))
		if status != 200 || b.Reason != string(elector.Verified) || b.Fence != before.Fence {
			t.Errorf("after a renewal: %d %+v", status, b)
		}
	})
}
