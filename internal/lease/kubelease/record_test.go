package kubelease

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/soloist-dev/soloist/internal/kube/reason"
	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/lease/leasetest"
)

const hash = "0123456789abcdef0123456789abcdef"

// object returns the Lease of a holder, changed.
func object(change func(spec map[string]any, notes map[string]string)) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}}
	obj.SetName(name)
	obj.SetUID("uid-1")
	obj.SetResourceVersion("7")
	r := record{obj: obj}
	r.obj = r.taken(lease.Identity{Name: "a", PodUID: "uid-a", Address: "10.0.0.1:4040"}, hash, 42, 15*time.Second)
	return r.edit(change)
}

func TestWhatPeopleRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		obj := object(func(map[string]any, map[string]string) {})
		want := map[string]any{
			"holderIdentity": "a", "leaseDurationSeconds": int64(15), "leaseTransitions": int64(1),
			"acquireTime": "2000-01-01T00:00:00.000000Z", "renewTime": "2000-01-01T00:00:00.000000Z",
		}
		if got := obj.Object["spec"].(map[string]any); !maps.Equal(got, want) {
			t.Errorf("spec is %v", got)
		}
		time.Sleep(1500 * time.Millisecond)
		r := decode(obj, time.Hour)
		obj = r.extended(43, 15001*time.Millisecond)
		want["renewTime"], want["leaseDurationSeconds"] = "2000-01-01T00:00:01.500000Z", int64(16)
		if got := obj.Object["spec"].(map[string]any); !maps.Equal(got, want) {
			t.Errorf("extended, spec is %v", got)
		}
		if r = decode(obj, time.Hour); r.length != 15001*time.Millisecond || r.fence != 43 || r.token != hash {
			t.Errorf("read back: %+v", r)
		}
		// At the same instant the next write differs all the same.
		if again := decode(r.extended(43, 15001*time.Millisecond), time.Hour); again.write == r.write {
			t.Errorf("two writes are one: %q", r.write)
		}
		obj = r.released(hash, true)
		if got := obj.Object["spec"].(map[string]any); !maps.Equal(got, map[string]any{"leaseTransitions": int64(1)}) {
			t.Errorf("released, spec is %v", got)
		}
		if got := obj.GetAnnotations(); !maps.Equal(got, map[string]string{noteFence: "43", noteBurned: hash + "+"}) {
			t.Errorf("released, annotations are %v", got)
		}
	})
}

func TestMangledObjects(t *testing.T) {
	note := func(key, value string) func(map[string]any, map[string]string) {
		return func(_ map[string]any, notes map[string]string) { notes[key] = value }
	}
	spec := func(key string, value any) func(map[string]any, map[string]string) {
		return func(spec map[string]any, notes map[string]string) {
			delete(notes, noteLength)
			spec[key] = value
		}
	}
	for what, c := range map[string]struct {
		change func(map[string]any, map[string]string)
		token  string
		fence  uint64
		length time.Duration
	}{
		"whole":                     {func(map[string]any, map[string]string) {}, hash, 42, 15 * time.Second},
		"no token":                  {note(noteToken, ""), "", 42, 15 * time.Second},
		"a short token":             {note(noteToken, "abcd"), "", 42, 15 * time.Second},
		"a token in capitals":       {note(noteToken, strings.ToUpper(hash)), "", 42, 15 * time.Second},
		"no fence":                  {note(noteFence, ""), "", 0, 15 * time.Second},
		"a negative fence":          {note(noteFence, "-1"), "", 0, 15 * time.Second},
		"a huge fence":              {note(noteFence, "9007199254740992"), "", 0, 15 * time.Second},
		"a fence of zero":           {note(noteFence, "0"), "", 0, 15 * time.Second},
		"no length":                 {note(noteLength, ""), hash, 42, 15 * time.Second},
		"a negative length":         {note(noteLength, "-5"), hash, 42, 15 * time.Second},
		"a length of for ever":      {note(noteLength, "9223372036854775807"), hash, 42, 15 * time.Second},
		"no seconds either":         {spec("leaseDurationSeconds", nil), hash, 42, time.Hour},
		"seconds for ever":          {spec("leaseDurationSeconds", int64(1<<40)), hash, 42, time.Hour},
		"seconds of the wrong kind": {spec("leaseDurationSeconds", "15"), hash, 42, time.Hour},
	} {
		r := decode(object(c.change), time.Hour)
		if !r.held || r.foreign || r.token != c.token || r.fence != c.fence || r.length != c.length {
			t.Errorf("%s: held %v, foreign %v, token %q, fence %d, length %v", what, r.held, r.foreign, r.token, r.fence, r.length)
		}
	}
	burnedAll := note(noteBurned, strings.Repeat(hash+" nonsense ", 20))
	if got := decode(object(burnedAll), time.Hour).burned; len(got) != maxBurned || slices.Contains(got, "nonsense") {
		t.Errorf("burned: %v", got)
	}
}

// A holder that can't be made out is waited for, like any other.
func TestAMangledHolderRunsOut(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		a, b := newClient(t, s), newClient(t, s)
		g := a.grant(ask("a"))
		s.change(name, func(obj *unstructured.Unstructured) {
			notes := obj.GetAnnotations()
			notes[noteToken], notes[noteLength] = "?", "?"
			obj.SetAnnotations(notes)
		})
		if took := b.takes(ask("b"), time.Minute); took < timing.LeaseDuration {
			t.Errorf("taken over after %v", took)
		}
		if next := s.get(name); next.fence <= g.Fence || next.token == "" || next.holder.Name != "b" {
			t.Errorf("left is %+v", next)
		}
	})
}

// A Lease of the cluster's own leader elections is not ours to take, ever.
func TestALeaseOfOthersIsLeftAlone(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		a := newClient(t, s)
		a.release(ask("a"), false)
		s.change(name, func(obj *unstructured.Unstructured) {
			obj.SetAnnotations(nil)
			obj.Object["spec"] = map[string]any{"holderIdentity": "controller_1", "leaseDurationSeconds": int64(15)}
		})
		before := s.get(name).obj.GetResourceVersion()
		r := ask("a")
		r.Reclaim = true
		for range 3 {
			_, err := a.Acquire(t.Context(), r)
			_, release := a.Release(t.Context(), r.Claim)
			for _, err := range []error{err, release} {
				if !strings.Contains(err.Error(), `"controller_1"`) || !lease.IsVerdict(err) {
					t.Errorf("%v", err)
				}
			}
			time.Sleep(time.Hour)
		}
		if after := s.get(name).obj.GetResourceVersion(); after != before {
			t.Error("it was written")
		}
	})
}

func TestNames(t *testing.T) {
	for lock, want := range map[string]bool{
		"city-ids": true, "a": true, "jobs.nightly.example.com": true, strings.Repeat("a", 253): true,
		"": false, "City": false, "a_b": false, "a/b": false, "-a": false, "a b": false, "..": false, "ä": false,
		strings.Repeat("a", 254): false,
	} {
		if err := judgeName(lock); (err == nil) != want || err != nil && !lease.IsVerdict(err) {
			t.Errorf("%q: %v", lock, err)
		}
	}
}

func TestOptions(t *testing.T) {
	for what, o := range map[string]Options{
		"no namespace":      {Lease: time.Second},
		"a wrong namespace": {Namespace: "Shop", Lease: time.Second},
		"no lease":          {Namespace: "shop"},
	} {
		if _, err := Open(&rest.Config{}, o); err == nil {
			t.Errorf("%s was taken", what)
		}
	}
}

func TestErrorKinds(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		a := newClient(t, s)
		for status, want := range map[metav1.StatusReason]string{
			metav1.StatusReasonForbidden: reason.Forbidden, metav1.StatusReasonUnauthorized: reason.Unauthorized,
			metav1.StatusReasonInvalid: reason.Invalid, metav1.StatusReasonTooManyRequests: reason.Throttled,
			metav1.StatusReasonTimeout: lease.KindTimeout, metav1.StatusReasonServiceUnavailable: reason.Unavailable,
			"Nonsense": lease.KindOther,
		} {
			s.refuse("GET", http.StatusTeapot, status)
			_, err := a.Acquire(t.Context(), ask("a"))
			wantKind(t, string(status), err, want)
		}
		s.refuse("GET", 404, metav1.StatusReasonNotFound)
		s.refuse("POST", 404, metav1.StatusReasonNotFound)
		_, err := a.Acquire(t.Context(), ask("a"))
		wantKind(t, "no namespace", err, reason.NotFound)
		a.w.set(func(leasetest.Call) leasetest.Fate { return leasetest.Fate{Refused: true} })
		_, err = a.Inspect(t.Context(), name)
		wantKind(t, "nobody there", err, lease.KindRefused)
		a.w.setDown(true)
		a.w.set(func(leasetest.Call) leasetest.Fate { return leasetest.Fate{} })
		a.unanswered(func(ctx context.Context) error {
			_, err := a.Inspect(ctx, name)
			wantKind(t, "no answer", err, lease.KindTimeout)
			return err
		})
	})
}

func wantKind(t *testing.T, what string, err error, kind string) {
	t.Helper()
	var e *lease.StoreError
	if !errors.As(err, &e) || e.ErrorKind() != kind || lease.IsVerdict(err) {
		t.Errorf("%s: %v, want kind %s and no verdict", what, err, kind)
	}
	if advice := advice[kind]; err != nil && !strings.Contains(err.Error(), advice) {
		t.Errorf("%s: %v does not say %q", what, err, advice)
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"kind":"Lease"}`, `{"kind":"Lease","metadata":{"annotations":{"soloist.dev/token":"` + hash + `","soloist.dev/fence":"5"}}}`,
		`{"kind":"Lease","metadata":{"annotations":{"soloist.dev/lease-ms":"1e9","soloist.dev/burned":"a b"}},"spec":null}`,
		`{"kind":"Lease","metadata":[],"spec":{"holderIdentity":7,"leaseDurationSeconds":-1,"leaseTransitions":1.5,"renewTime":"9999-12-31T23:59:59.999999Z"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var obj unstructured.Unstructured
		if obj.UnmarshalJSON(b) != nil {
			return
		}
		r := decode(&obj, time.Hour)
		switch {
		case r.token != "" && (!isHash(r.token) || r.fence == 0 || !r.held):
			t.Errorf("token %q with fence %d, held %v", r.token, r.fence, r.held)
		case r.fence >= maxFence, r.length <= 0, r.length > longest, len(r.burned) > maxBurned:
			t.Errorf("%+v", r)
		}
		taken := r.taken(lease.Identity{Name: "a"}, hash, r.fence+1, time.Second)
		if meta, ok := obj.Object["metadata"]; ok && meta != nil {
			if _, ok := meta.(map[string]any); !ok {
				return // no server keeps it
			}
		}
		next := decode(taken, time.Hour)
		if next.token != hash || next.fence != r.fence+1 || next.length != time.Second || next.write == r.write || !slices.Equal(next.burned, r.burned) {
			t.Errorf("taken: %+v", next)
		}
	})
}
