package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/soloist-dev/soloist/internal/lease"
)

// leader is the holder that the tests ask about.
var leader = lease.Held{Term: 1234, Holder: lease.Holder{Identity: lease.Identity{Name: "pod-a", PodUID: "uid-a"}}}

const (
	running = `{"state":{"running":{}}}`
	ended   = `{"state":{"terminated":{"exitCode":0}}}`
	waiting = `{"state":{"waiting":{"reason":"CrashLoopBackOff"}},"lastState":{"terminated":{"message":"led \"city-ids\" with fence 1234\n"}}}`
	leads   = `{"state":{"terminated":{"exitCode":137,"message":"led \"city-ids\" with fence 1200\nled \"city-ids\" with fence 1234\n"}}}`
)

// aPod has a sidecar, one app container, and what else is said.
func aPod(uid, sidecar, app, more string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"pod-a","uid":%q,"resourceVersion":"7"%s},
		"spec":{"initContainers":[{"name":"soloist"}],"containers":[{"name":"app"}]},
		"status":{"phase":"Failed","initContainerStatuses":[%s],"containerStatuses":[%s]}}`, uid, more, sidecar, app)
}

func TestWhatProvesADeath(t *testing.T) {
	ephemeral := strings.Replace(aPod("uid-a", leads, ended, ""), `"containers"`, `"ephemeralContainers":[{"name":"debug"}],"containers"`, 1)
	for name, c := range map[string]struct {
		pod  string
		want verdict
	}{
		"all have ended, its term is named":        {aPod("uid-a", leads, ended, ""), proven},
		"the same while it is deleted":             {aPod("uid-a", leads, ended, `,"deletionTimestamp":"2026-01-01T00:00:00Z"`), proven},
		"the app lives":                            {aPod("uid-a", leads, running, ""), open},
		"the app waits for its restart":            {aPod("uid-a", leads, waiting, ""), open},
		"the sidecar lives":                        {aPod("uid-a", running, ended, ""), open},
		"the sidecar has been restarted":           {aPod("uid-a", waiting, ended, ""), open},
		"all have ended, another term is named":    {aPod("uid-a", strings.Replace(leads, "fence 1234", "fence 12345", 1), ended, ""), open},
		"half a line":                              {aPod("uid-a", strings.Replace(leads, `1234\n`, `1234`, 1), ended, ""), open},
		"another lock is named":                    {aPod("uid-a", strings.ReplaceAll(leads, "city-ids", "other"), ended, ""), open},
		"all have ended, no term is named":         {aPod("uid-a", ended, ended, ""), open},
		"another pod of that name":                 {aPod("uid-b", leads, ended, ""), never},
		"a status is missing":                      {strings.Replace(aPod("uid-a", leads, ended, ""), "["+ended+"]", "[]", 1), open},
		"an ephemeral container without a status":  {ephemeral, open},
		"an ephemeral container lives":             {strings.Replace(ephemeral, `"phase"`, `"ephemeralContainerStatuses":[`+running+`],"phase"`, 1), open},
		"an ephemeral container has ended as well": {strings.Replace(ephemeral, `"phase"`, `"ephemeralContainerStatuses":[`+ended+`],"phase"`, 1), proven},
		"no status at all":                         {`{"apiVersion":"v1","kind":"Pod","metadata":{"uid":"uid-a"},"spec":{"containers":[{"name":"app"}]}}`, open},
		"no containers at all":                     {`{"apiVersion":"v1","kind":"Pod","metadata":{"uid":"uid-a"},"status":{"phase":"Failed"}}`, open},
		"nonsense":                                 {`{"apiVersion":"v1","kind":"Pod","metadata":{"uid":"uid-a"},"spec":7}`, open},
	} {
		var pod unstructured.Unstructured
		if err := json.Unmarshal([]byte(c.pod), &pod.Object); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := judge(&pod, "city-ids", leader); got != c.want {
			t.Errorf("%s: verdict %d, want %d", name, got, c.want)
		}
	}
}

// deaths is a detector whose API server gives these answers, one after another.
func deaths(t *testing.T, answers ...http.HandlerFunc) *Deaths {
	t.Helper()
	next := make(chan http.HandlerFunc, len(answers))
	for _, a := range answers {
		next <- a
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		select {
		case answer := <-next:
			answer(w, r)
		default:
			t.Errorf("unexpected %s %s", r.Method, r.URL)
			status404(w, r) // which ends it
		}
	}))
	t.Cleanup(srv.Close)
	t.Cleanup(func() {
		if len(next) > 0 {
			t.Errorf("%d requests did not come", len(next))
		}
	})
	d, err := NewDeaths(&rest.Config{Host: srv.URL}, "shop", "city-ids", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// shows answers a GET of the pod.
func shows(t *testing.T, pod string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/namespaces/shop/pods/pod-a" || r.URL.RawQuery != "" {
			t.Errorf("GET of %s, which may be a cache's", r.URL)
		}
		fmt.Fprint(w, pod)
	}
}

// changes answers a watch, and ends it.
func changes(t *testing.T, events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if q.Get("watch") != "true" || q.Get("fieldSelector") != "metadata.name=pod-a" || q.Get("resourceVersion") != "7" {
			t.Errorf("watch %s", r.URL)
		}
		for _, e := range events {
			fmt.Fprintln(w, e)
			w.(http.Flusher).Flush()
		}
	}
}

func event(kind, pod string) string {
	return fmt.Sprintf(`{"type":%q,"object":%s}`, kind, strings.ReplaceAll(pod, "\n", ""))
}

func status500(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }

func status404(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusNotFound)
	fmt.Fprint(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"NotFound","code":404}`)
}

func TestDead(t *testing.T) {
	alive, dead := aPod("uid-a", running, running, ""), aPod("uid-a", leads, ended, "")
	for name, c := range map[string]struct {
		answers []http.HandlerFunc
		want    bool
	}{
		"dead already":       {[]http.HandlerFunc{shows(t, dead)}, true},
		"dies under watch":   {[]http.HandlerFunc{shows(t, alive), changes(t, event("MODIFIED", alive), event("MODIFIED", dead))}, true},
		"last words":         {[]http.HandlerFunc{shows(t, alive), changes(t, event("DELETED", dead))}, true},
		"the watch breaks":   {[]http.HandlerFunc{shows(t, alive), changes(t), shows(t, dead)}, true},
		"the watch is stale": {[]http.HandlerFunc{shows(t, alive), changes(t, `{"type":"ERROR","object":{"apiVersion":"v1","kind":"Status","code":410}}`), shows(t, dead)}, true},
		"the server fails":   {[]http.HandlerFunc{status500, shows(t, alive), status500, shows(t, dead)}, true},
		"gone":               {[]http.HandlerFunc{status404}, false},
		"deleted by force":   {[]http.HandlerFunc{shows(t, alive), changes(t, event("DELETED", alive)), status404}, false},
		"replaced":           {[]http.HandlerFunc{shows(t, alive), changes(t, event("ADDED", aPod("uid-b", leads, ended, "")))}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := deaths(t, c.answers...).Dead(t.Context(), leader); got != c.want {
				t.Errorf("Dead is %v", got)
			}
		})
	}
}

func TestDeadEndsWithItsContext(t *testing.T) {
	watching := make(chan struct{})
	d := deaths(t, shows(t, aPod("uid-a", running, running, "")), func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		close(watching)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got := make(chan bool)
	go func() { got <- d.Dead(ctx, leader) }()
	<-watching
	cancel()
	if <-got {
		t.Error("proven by nothing")
	}
	if d.Dead(t.Context(), lease.Held{Term: 1}) {
		t.Error("nobody is dead")
	}
}

// What one process writes is what proves its end, and nobody else's.
func TestTerminationMessage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "termination-log")
	if NewTerminationMessage(path) != nil {
		t.Fatal("a file that does not exist was made, or taken")
	}
	if err := os.WriteFile(path, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	m := NewTerminationMessage(path)
	for fence := range uint64(1000) {
		if err := m.Add(strings.Repeat("l", 150), 1<<53-1000+fence); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Add("city-ids", 1234); err != nil {
		t.Fatal(err)
	}
	if err := m.Lost("city-ids", "expired"); err != nil {
		t.Fatal(err)
	}
	said, err := os.ReadFile(path)
	if err != nil || len(said) > 4096 {
		t.Fatalf("%d bytes, %v; the kubelet takes 4096", len(said), err)
	}
	for line, want := range map[string]bool{"lost \"city-ids\": expired\n": true, term("city-ids", 1234): true, term("city-ids", 123): false, term("ids", 1234): false} {
		if strings.Contains(string(said), line) != want {
			t.Errorf("%q in the message: %v", line, !want)
		}
	}
}
