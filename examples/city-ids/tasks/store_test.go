package tasks_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/soloist-dev/soloist/examples/city-ids/tasks"
)

// refused is what a step of the table expects of a refusal.
type refused struct {
	reason        string
	highest, next int64
}

func TestAdd(t *testing.T) {
	var s tasks.Store
	for _, step := range []struct {
		name   string
		id     int64
		fence  int64
		worker string
		want   *refused
	}{
		{"the first ID is 1", 2, 10, "a", &refused{tasks.WrongID, 0, 1}},
		{"first", 1, 10, "a", nil},
		{"the same term goes on", 2, 10, "a", nil},
		{"the last one again, as after a lost answer", 2, 10, "a", nil},
		{"an older one again", 1, 10, "a", &refused{tasks.WrongID, 10, 3}},
		{"a gap", 4, 10, "a", &refused{tasks.WrongID, 10, 3}},
		{"a wrong ID doesn't raise the fence", 4, 99, "a", &refused{tasks.WrongID, 10, 3}},
		{"the next term", 3, 12, "b", nil},
		{"the term before, late, with an ID long gone", 3, 10, "a", &refused{tasks.LowerFence, 12, 4}},
		{"the term before, late, with the right ID", 4, 10, "a", &refused{tasks.LowerFence, 12, 4}},
		{"just below", 4, 11, "b", &refused{tasks.LowerFence, 12, 4}},
		{"the last ID again, by another worker", 3, 12, "a", &refused{tasks.WrongID, 12, 4}},
		{"a later term of the first worker", 4, 13, "a", nil},
	} {
		got, err := s.Add(tasks.Task{CityID: step.id, Fence: step.fence, Worker: step.worker})
		if step.want == nil {
			if err != nil || got.CityID != step.id || got.At.IsZero() {
				t.Errorf("%s: got %+v, %v, want it recorded", step.name, got, err)
			}
			continue
		}
		r, ok := errors.AsType[*tasks.Refusal](err)
		if !ok {
			t.Errorf("%s: got %+v, %v, want a refusal", step.name, got, err)
			continue
		}
		if got := (refused{r.Reason, r.Highest, r.Next}); got != *step.want {
			t.Errorf("%s: got %+v, want %+v", step.name, got, *step.want)
		}
	}
	if r := s.Record(); len(r.Tasks) != 4 || len(r.Refused) != 8 || r.Next != 5 || r.Fence != 13 {
		t.Errorf("record = %+v, want 4 tasks, 8 refusals, next 5, fence 13", r)
	}
}

func TestUnguardedBelievesEverybody(t *testing.T) {
	s := tasks.Store{Unguarded: true}
	for _, task := range []tasks.Task{{CityID: 1, Fence: 2, Worker: "b"}, {CityID: 1, Fence: 1, Worker: "a"}} {
		if _, err := s.Add(task); err != nil {
			t.Errorf("Add(%+v) = %v, want it recorded", task, err)
		}
	}
}

func TestOneIDIsHandedOutOnce(t *testing.T) {
	server := httptest.NewServer(tasks.NewHandler(new(tasks.Store)))
	defer server.Close()
	c := tasks.Client{URL: server.URL}
	const writers, ids = 8, 50

	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for {
				id, err := c.Next(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if id > ids {
					return
				}
				err = c.Add(t.Context(), tasks.Task{CityID: id, Fence: 7, Worker: string(rune('a' + w))})
				if _, refused := errors.AsType[*tasks.Refusal](err); err != nil && !refused {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if next, err := c.Next(t.Context()); next != ids+1 || err != nil {
		t.Errorf("Next = %d, %v, want %d", next, err, ids+1)
	}
}

func TestHTTP(t *testing.T) {
	h := tasks.NewHandler(new(tasks.Store))
	for _, step := range []struct {
		name, method, path, body string
		status                   int
		want                     []string // parts of the answer
	}{
		{"empty", "GET", "/tasks", "", 200, []string{`"next":1`, `"fence":0`, `"tasks":[]`, `"refused":[]`}},
		{"record", "POST", "/tasks", `{"city_id":1,"fence":5,"worker":"a"}`, 201, []string{`"city_id":1`, `"at":"`}},
		{"next", "GET", "/tasks/next", "", 200, []string{`{"next":2}`}},
		{"wrong ID", "POST", "/tasks", `{"city_id":3,"fence":5,"worker":"a"}`, 409, []string{`"error":"wrong_id"`, `"next":2`}},
		{"lower fence", "POST", "/tasks", `{"city_id":2,"fence":4,"worker":"a"}`, 409, []string{
			`"error":"lower_fence"`, `"message":"tasks: city ID 2 refused: fence 4 is lower than 5"`, `"highest":5`,
		}},
		{"no fence", "POST", "/tasks", `{"city_id":2,"worker":"a"}`, 400, []string{`"error":"invalid"`}},
		{"no worker", "POST", "/tasks", `{"city_id":2,"fence":5}`, 400, []string{`"error":"invalid"`}},
		{"no JSON", "POST", "/tasks", `x`, 400, []string{`"error":"invalid"`}},
		{"too much", "POST", "/tasks", `{"worker":"` + strings.Repeat("a", 5000) + `"}`, 400, []string{`"error":"invalid"`}},
		{"all of it", "GET", "/tasks", "", 200, []string{`"next":2`, `"fence":5`, `"tasks":[{`, `"refused":[{`}},
		{"health", "GET", "/healthz", "", 200, nil},
		{"method", "DELETE", "/tasks", "", 405, nil},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), step.method, step.path, strings.NewReader(step.body)))
		if w.Code != step.status {
			t.Errorf("%s: status %d, want %d", step.name, w.Code, step.status)
		}
		for _, part := range step.want {
			if !strings.Contains(w.Body.String(), part) {
				t.Errorf("%s: answer %s, want it to contain %s", step.name, w.Body, part)
			}
		}
	}
}

func TestClient(t *testing.T) {
	s := new(tasks.Store)
	server := httptest.NewServer(tasks.NewHandler(s))
	c := tasks.Client{URL: server.URL}

	if err := c.Add(t.Context(), tasks.Task{CityID: 1, Fence: 9, Worker: "b"}); err != nil {
		t.Errorf("Add = %v, want it recorded", err)
	}
	err := c.Add(t.Context(), tasks.Task{CityID: 1, Fence: 8, Worker: "a"})
	if r, ok := errors.AsType[*tasks.Refusal](err); !ok || r.Reason != tasks.LowerFence || r.Highest != 9 || r.Worker != "a" {
		t.Errorf("Add with a lower fence = %v, want the store's refusal", err)
	}
	err = c.Add(t.Context(), tasks.Task{})
	if _, refused := errors.AsType[*tasks.Refusal](err); err == nil || refused {
		t.Errorf("Add of nothing = %v, want an error that is no refusal", err)
	}

	server.Config.Handler = http.NotFoundHandler()
	if _, err := c.Next(t.Context()); err == nil {
		t.Error("Next of another server: no error")
	}
	server.Close()
	if err := c.Add(t.Context(), tasks.Task{CityID: 2, Fence: 9, Worker: "b"}); err == nil {
		t.Error("Add without a server: no error")
	}
}
