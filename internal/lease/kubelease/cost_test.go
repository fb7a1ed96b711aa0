package kubelease

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/soloist-dev/soloist/internal/lease"
)

// What the design costs: see the package comment.
func TestRequestsInAMinute(t *testing.T) {
	for what, watch := range map[string]bool{"with a watch": true, "without": false} {
		bubble(t, func(t *testing.T, s *server) {
			if !watch {
				s.refuse("WATCH", 403, metav1.StatusReasonForbidden)
			}
			a, b := newClient(t, s), newClient(t, s)
			term := <-a.leads("a")
			b.leads("b")
			time.Sleep(time.Minute)
			leader, standby := a.w.counts(), b.w.counts()
			const minutes = 10
			time.Sleep(minutes * time.Minute)
			per := func(c *client, before map[string]int, op string) float64 {
				return float64(c.w.counts()[op]-before[op]) / minutes
			}
			got := []float64{
				per(a, leader, "PUT"), per(a, leader, "GET"),
				per(b, standby, "PUT"), per(b, standby, "GET"), per(b, standby, "WATCH"),
			}
			t.Logf("%s, a minute: leader %.1f PUT, %.1f GET; standby %.1f PUT, %.1f GET, %.1f WATCH", what, got[0], got[1], got[2], got[3], got[4])
			if got[0] > 30.5 || got[1] > 0 || got[2] > 0 || watch && (got[3] > 0 || got[4] > 0) || got[3] > 4 || got[4] > 3 {
				t.Error("more than promised")
			}
			_, _ = term.Release(t.Context())
			time.Sleep(time.Minute)
			if got := s.get(name).holder.Name; got != "b" {
				t.Errorf("%q leads", got)
			}
		})
	}
}

// A hand-over in a crowd: most are told who was faster before they ask.
func TestACrowdDoesNotTryAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		const crowd, trip = 50, 2 * time.Millisecond
		a := newClient(t, s)
		term := <-a.leads("a")
		var waiting []*client
		next := make(chan *lease.Term, crowd)
		for range crowd {
			c := newClient(t, s)
			c.w.trip = trip
			waiting = append(waiting, c)
			c.leadsTo("b", next)
		}
		time.Sleep(10 * time.Second)
		count := func() (n int) {
			for _, c := range waiting {
				n += c.w.counts()["GET"] + c.w.counts()["PUT"]
			}
			return n
		}
		before, from := count(), time.Now()
		release(nil, nil, term)
		<-next
		took := time.Since(from)
		time.Sleep(spread)
		requests := count() - before
		t.Logf("%d waiters: a hand-over in %v with %d requests", crowd, took, requests)
		if took > 20*time.Millisecond || requests > crowd {
			t.Error("more than promised")
		}
	})
}

// What others keep in the object stays.
func TestOthersFieldsStay(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		a := newClient(t, s)
		r := ask("a")
		a.release(r, false) // makes the object
		s.change(name, func(obj *unstructured.Unstructured) {
			obj.SetLabels(map[string]string{"team": "shop"})
			notes := obj.GetAnnotations()
			notes["note"] = "ours"
			obj.SetAnnotations(notes)
			obj.Object["spec"] = map[string]any{"future": "field"}
		})
		r = ask("a")
		g := a.grant(r)
		if _, err := a.Extend(t.Context(), g, lease.Extension{TTL: time.Minute}); err != nil {
			t.Fatal(err)
		}
		a.release(r, true)
		now := s.get(name)
		future, _, _ := unstructured.NestedString(now.obj.Object, "spec", "future")
		if now.obj.GetLabels()["team"] != "shop" || now.obj.GetAnnotations()["note"] != "ours" || future != "field" || now.held {
			t.Errorf("left is %v", now.obj)
		}
	})
}
