package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/soloist-dev/soloist/internal/inject"
)

var quiet = slog.New(slog.DiscardHandler)

func options() inject.Options {
	return inject.Options{Image: "sidecar:1", Defaults: map[string]string{"store": "redis://r:6379"}, Resources: inject.DefaultResources()}
}

// review posts a pod and returns the answer.
func review(t *testing.T, pod string) *admissionv1.AdmissionResponse {
	t.Helper()
	body := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u-1","object":` + pod + `}}`
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/inject", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	Handler(options(), quiet).ServeHTTP(w, r)
	var answer admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &answer); w.Code != 200 || err != nil || answer.Response == nil {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if answer.Response.UID != "u-1" || answer.Kind != "AdmissionReview" || answer.APIVersion != "admission.k8s.io/v1" {
		t.Errorf("%+v", answer)
	}
	return answer.Response
}

const asks = `"metadata":{"annotations":{"soloist.dev/inject":"enabled","config.soloist.dev/lock":"l"}}`

func TestReview(t *testing.T) {
	a := review(t, `{`+asks+`,"spec":{"containers":[{"name":"a"},{"name":"b","env":[{"name":"X","value":"1"}]}]}}`)
	if !a.Allowed || a.PatchType == nil || *a.PatchType != admissionv1.PatchTypeJSONPatch {
		t.Fatalf("%+v", a)
	}
	var ops []struct{ Op, Path string }
	if err := json.Unmarshal(a.Patch, &ops); err != nil {
		t.Fatal(err)
	}
	want := "add /spec/initContainers, add /spec/containers/0/env" + strings.Repeat(", add /spec/containers/1/env/-", 4)
	var got []string
	for _, o := range ops {
		got = append(got, o.Op+" "+o.Path)
	}
	if strings.Join(got, ", ") != want {
		t.Errorf("%q, want %s", got, want)
	}

	a = review(t, `{`+asks+`,"spec":{"initContainers":[{"name":"migrate"}],"containers":[{"name":"a"}]}}`)
	if !strings.Contains(string(a.Patch), `"path":"/spec/initContainers/0"`) {
		t.Errorf("%s: want the sidecar first", a.Patch)
	}
	a = review(t, `{`+strings.Replace(asks, `"l"`, `"l","config.soloist.dev/readiness-gate":"true"`, 1)+`,"spec":{"containers":[{"name":"a"}]}}`)
	if !strings.Contains(string(a.Patch), `"path":"/spec/readinessGates"`) {
		t.Errorf("%s: want a readiness gate", a.Patch)
	}
}

func TestLeftAlone(t *testing.T) {
	for _, pod := range []string{
		`{"spec":{"containers":[{"name":"a"}]}}`,
		`{"metadata":{"annotations":{"soloist.dev/inject":"disabled"}},"spec":{}}`,
	} {
		if a := review(t, pod); !a.Allowed || a.Patch != nil {
			t.Errorf("%s: %+v", pod, a)
		}
	}
}

func TestRefused(t *testing.T) {
	for pod, want := range map[string]string{
		`{"metadata":{"annotations":{"soloist.dev/inject":"yes"}}}`:     "must be enabled or disabled",
		`{"metadata":{"annotations":{"soloist.dev/inject":"enabled"}}}`: "config.soloist.dev/lock is required",
		`[]`: "is no pod",
	} {
		if a := review(t, pod); a.Allowed || a.Patch != nil || !strings.Contains(a.Result.Message, want) {
			t.Errorf("%s: %+v", pod, a)
		}
	}
	for _, c := range []struct {
		method, kind, body string
		code               int
	}{
		{"GET", "application/json", "", 415}, {"POST", "text/plain", "{}", 415},
		{"POST", "application/json", "", 400}, {"POST", "application/json", "{}", 400},
		{"POST", "application/json", strings.Repeat(" ", maxReview+1), 400},
	} {
		r := httptest.NewRequestWithContext(t.Context(), c.method, "/inject", strings.NewReader(c.body))
		r.Header.Set("Content-Type", c.kind)
		w := httptest.NewRecorder()
		if Handler(options(), quiet).ServeHTTP(w, r); w.Code != c.code {
			t.Errorf("%s %s, %d bytes: %d", c.method, c.kind, len(c.body), w.Code)
		}
	}
}

func FuzzReview(f *testing.F) {
	f.Add([]byte(`{"request":{"object":{` + asks + `,"spec":{"containers":[{"name":"a"}]}}}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/inject", bytes.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		Handler(options(), quiet).ServeHTTP(w, r)
		if w.Code != 200 && w.Code != 400 {
			t.Errorf("%d", w.Code)
		}
	})
}

// apiServer has one Secret and one configuration.
type apiServer struct {
	mu       sync.Mutex
	version  int
	secret   map[string]any
	bundle   string
	patches  int
	conflict int // updates to refuse before one passes
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	meta := map[string]any{"name": "soloist-injector-cert", "namespace": "soloist", "resourceVersion": fmt.Sprint(s.version)}
	switch {
	case r.URL.Path == "/api/v1/namespaces/soloist/secrets/soloist-injector-cert" && r.Method == http.MethodPut:
		var o struct {
			Metadata struct{ ResourceVersion string }
			Data     map[string]any
		}
		_ = json.NewDecoder(r.Body).Decode(&o)
		if s.conflict > 0 || o.Metadata.ResourceVersion != fmt.Sprint(s.version) {
			s.conflict--
			w.WriteHeader(http.StatusConflict)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`)
			return
		}
		s.version++
		s.secret = o.Data
		fallthrough
	case r.URL.Path == "/api/v1/namespaces/soloist/secrets/soloist-injector-cert":
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": s.secret})
	case strings.HasSuffix(r.URL.Path, "/mutatingwebhookconfigurations/soloist-injector"):
		if r.Method == http.MethodPatch {
			var ops []struct {
				Op    string
				Value string
			}
			_ = json.NewDecoder(r.Body).Decode(&ops)
			s.bundle = ops[1].Value
			s.patches++
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
			"metadata": map[string]any{"name": "soloist-injector"},
			"webhooks": []any{map[string]any{"name": "inject.soloist.dev", "clientConfig": map[string]any{"caBundle": s.bundle}}},
		})
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func keeper(t *testing.T, s *apiServer, lasts time.Duration) *Keeper {
	t.Helper()
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	api, err := dynamic.NewForConfig(&rest.Config{Host: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	return &Keeper{
		API: api, Namespace: "soloist", Secret: "soloist-injector-cert", Webhook: "soloist-injector",
		Service: "soloist-injector", Lasts: lasts, Log: quiet,
	}
}

// trusts demands that a client which trusts the published authorities accepts what is served.
func trusts(t *testing.T, s *apiServer, k *Keeper) {
	t.Helper()
	s.mu.Lock()
	var published []byte
	err := json.Unmarshal([]byte(`"`+s.bundle+`"`), &published)
	s.mu.Unlock()
	roots := x509.NewCertPool()
	if err != nil || !roots.AppendCertsFromPEM(published) {
		t.Fatalf("published %q (%v)", published, err)
	}
	a, b := net.Pipe()
	server := tls.Server(a, &tls.Config{GetCertificate: k.Certificate})
	client := tls.Client(b, &tls.Config{RootCAs: roots, ServerName: "soloist-injector.soloist.svc"})
	done := make(chan error, 1)
	go func() { done <- server.HandshakeContext(t.Context()) }()
	if err := client.HandshakeContext(t.Context()); err != nil {
		t.Errorf("handshake: %v", err)
	}
	if err := <-done; err != nil {
		t.Errorf("handshake of the server: %v", err)
	}
}

func TestKeeper(t *testing.T) {
	s := &apiServer{version: 1}
	a, b := keeper(t, s, time.Hour), keeper(t, s, time.Hour)
	if a.Ready() {
		t.Error("ready without a certificate")
	}
	if _, err := a.Certificate(nil); err == nil {
		t.Error("a certificate out of nothing")
	}
	for _, k := range []*Keeper{a, b, a} {
		if err := k.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		trusts(t, s, k)
	}
	if s.version != 2 || s.patches != 1 || !a.Ready() {
		t.Errorf("%d writes, %d patches: the second pod takes what the first made", s.version-1, s.patches)
	}
}

// Of two that renew at once one wins, and the other takes its certificate.
func TestKeeperConflict(t *testing.T) {
	s := &apiServer{version: 1, conflict: 2}
	k := keeper(t, s, time.Hour)
	if err := k.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	trusts(t, s, k)
}

func TestRenewal(t *testing.T) {
	s := &apiServer{version: 1}
	a, b := keeper(t, s, time.Hour), keeper(t, s, 50*time.Millisecond)
	if err := b.Step(t.Context()); err != nil { // so short that it is due at once
		t.Fatal(err)
	}
	<-time.After(60 * time.Millisecond)
	if err := a.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	trusts(t, s, a)
	if s.version != 3 || s.patches != 1 {
		t.Errorf("%d writes, %d patches: want a new certificate of the same authority", s.version-1, s.patches)
	}
	// What somebody has spoilt is made anew, and then both authorities are trusted.
	s.secret[authorityKeyKey], s.secret[certificateKey] = "bm9uc2Vuc2U=", "%%%"
	if err := a.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	trusts(t, s, a)
}

func TestKeeperRuns(t *testing.T) {
	s := &apiServer{version: 1}
	k := keeper(t, s, time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); k.Run(ctx) }()
	for deadline := time.Now().Add(time.Minute); !k.Ready(); {
		if time.Now().After(deadline) {
			t.Fatal("not ready")
		}
		<-time.After(time.Millisecond)
	}
	cancel()
	<-done
}
