package podmeta

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-dev/soloist/internal/elector"
	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/lease/leasetest"
)

var me = Pod{Namespace: "shop", Name: "pod-a", UID: "uid-a"}

// server is an API server with one pod, which takes in patches as the real one does.
type server struct {
	mu          sync.Mutex
	fail        func(what string) error // nil: nothing fails
	labels      map[string]string
	annotations map[string]string
	condition   string
	events      []string // their reasons
	calls       int
}

type refusal string

func (r refusal) Error() string     { return "refused: " + string(r) }
func (r refusal) ErrorKind() string { return string(r) }

func newServer() *server {
	return &server{
		labels:      map[string]string{"app": "x", Prefix + "role": "leader"}, // a predecessor's that crashed
		annotations: map[string]string{"other": "y", Prefix + "leader": "pod-a"},
	}
}

func (s *server) setFail(f func(string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = f
}

// take counts a call, and judges whether it fails.
func (s *server) take(ctx context.Context, what string) error {
	s.calls++
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if s.fail != nil {
		return s.fail(what)
	}
	return nil
}

func (s *server) PatchMarks(ctx context.Context, body []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.take(ctx, "marks"); err != nil {
		return err
	}
	var p struct {
		Metadata struct {
			UID                 string
			Labels, Annotations map[string]*string
		}
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return err
	}
	if p.Metadata.UID != me.UID {
		return refusal("conflict")
	}
	merge := func(into map[string]string, patch map[string]*string) {
		for k, v := range patch {
			if v == nil {
				delete(into, k)
			} else {
				into[k] = *v
			}
		}
	}
	merge(s.labels, p.Metadata.Labels)
	merge(s.annotations, p.Metadata.Annotations)
	return nil
}

func (s *server) PatchStatus(ctx context.Context, body []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.take(ctx, "condition"); err != nil {
		return err
	}
	var p struct {
		Status struct {
			Conditions []struct{ Type, Status string }
		}
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return err
	}
	if c := p.Status.Conditions; len(c) == 1 && c[0].Type == Condition {
		s.condition = c[0].Status
	}
	return nil
}

func (s *server) CreateEvent(ctx context.Context, body []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.take(ctx, "event"); err != nil {
		return err
	}
	var e struct{ Reason, Note string }
	if err := json.Unmarshal(body, &e); err != nil {
		return err
	}
	s.events = append(s.events, e.Reason)
	return nil
}

func (s *server) role() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.labels[Prefix+"role"]
}

func (s *server) get() (labels, annotations map[string]string, events []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.labels), maps.Clone(s.annotations), append([]string(nil), s.events...)
}

// pod is an election and its actor, on an API server of their own.
type pod struct {
	*elector.Elector
	actor  *Actor
	api    *server
	link   *leasetest.Link
	stop   func() // ends the election, then the actor
	marked chan struct{}
}

func start(t *testing.T, store *leasetest.Memory, name string, change ...func(*Config)) *pod {
	t.Helper()
	p := &pod{api: newServer(), link: leasetest.NewLink(store.NewProcess("")), marked: make(chan struct{})}
	clock := leasetest.NewClock(1)
	var err error
	p.Elector, err = elector.New(elector.Config{
		Lock: "city-ids", Identity: lease.Identity{Name: name}, Store: p.link, Timing: lease.DefaultTiming, Clock: clock.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Pod: me, API: p.api, Elections: []Election{p.Elector}, ReadinessGate: true}
	for _, f := range change {
		f(&c)
	}
	p.actor = New(c)
	ctx, stop := context.WithCancel(t.Context())
	marking, end := context.WithCancel(context.WithoutCancel(t.Context()))
	elected := make(chan struct{})
	go func() { defer close(elected); p.Elector.Run(ctx) }()
	go func() { defer close(p.marked); p.actor.Run(marking) }()
	p.stop = sync.OnceFunc(func() {
		stop()
		<-elected
		end()
		<-p.marked
	})
	t.Cleanup(func() {
		p.stop()
		p.link.Close()
	})
	synctest.Wait()
	return p
}

func bubble(t *testing.T, f func(t *testing.T, store *leasetest.Memory)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(t, leasetest.NewMemory(leasetest.Config{Lease: lease.DefaultTiming.LeaseDuration}))
	})
}

// await waits until the pod has the role.
func (p *pod) await(t *testing.T, role string, d time.Duration) {
	t.Helper()
	for from := time.Now(); p.api.role() != role; time.Sleep(time.Millisecond) {
		if time.Since(from) > d {
			t.Fatalf("role %q after %v, want %q", p.api.role(), d, role)
		}
	}
}
