package kubelease

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/lease/leasetest"
	"github.com/soloist-dev/soloist/internal/redistest"
)

// suite is the contract of a store of plain locks without a line.
func suite(open func(*testing.T) lease.Store) leasetest.Suite {
	return leasetest.Suite{Open: open, Plain: true, Unordered: true}
}

func TestConformanceInBubble(t *testing.T) {
	var s *server
	suite := suite(func(t *testing.T) lease.Store { return newClient(t, s).Store })
	suite.Bubble = func(t *testing.T, f func(*testing.T)) {
		synctest.Test(t, func(t *testing.T) {
			s = newServer(t)
			f(t)
		})
	}
	suite.Run(t)
}

// The same with a real API server, for a user that may do what the package comment says.
func TestConformance(t *testing.T) {
	c := apiServer(t)
	redistest.CheckLeaks(t)
	namespace := makeNamespace(t, c)
	user := grantVerbs(t, c, namespace)
	suite := suite(func(t *testing.T) lease.Store { return open(t, user, namespace) })
	suite.Short, suite.Crowd = time.Second, 8 // the server needs milliseconds for a request
	suite.Run(t)
	t.Run("a write that comes after the object was deleted is refused", func(t *testing.T) {
		s, admin := open(t, user, namespace), open(t, c, namespace)
		r := lease.Request{Claim: lease.Claim{Lock: "deleted", Token: lease.NewToken()}, TTL: time.Minute}
		if _, err := s.Acquire(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		late, _, err := s.read(t.Context(), r.Lock)
		if err != nil {
			t.Fatal(err)
		}
		if err := admin.calls.Delete(t.Context(), r.Lock, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := s.write(t.Context(), late.extended(late.fence, time.Hour)); !errors.Is(err, errStale) {
			t.Errorf("%v, want errStale", err)
		}
		if _, _, err := s.read(t.Context(), r.Lock); !apierrors.IsNotFound(err) {
			t.Errorf("%v, want that it is not found", err)
		}
	})
}

func open(t *testing.T, c *rest.Config, namespace string) *Store {
	t.Helper()
	s, err := Open(c, Options{Namespace: namespace, Lease: leasetest.Lease, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// apiServer returns how an administrator reaches an API server: that of
// SOLOIST_TEST_KUBECONFIG, else one that is started and ends with the test.
func apiServer(t *testing.T) *rest.Config {
	t.Helper()
	file := os.Getenv("SOLOIST_TEST_KUBECONFIG")
	if file == "" {
		file = startAPIServer(t)
	}
	c, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	c.QPS = -1
	return c
}

func startAPIServer(t *testing.T) (kubeconfig string) {
	t.Helper()
	if os.Getenv("E2E") != "1" {
		t.Skip("needs an API server: E2E=1 starts one, SOLOIST_TEST_KUBECONFIG names one")
	}
	const node = "../../../e2e/node/node"
	home := os.Getenv("SOLOIST_E2E_HOME")
	if home == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			t.Fatal(err)
		}
		home = filepath.Join(user, ".cache", "soloist-e2e")
	}
	if _, err := os.Stat(filepath.Join(home, "bin", "kube-apiserver")); err != nil {
		t.Fatalf("no API server: %v: run e2e/node/node build, or set SOLOIST_TEST_KUBECONFIG", err)
	}
	// A home of its own, so that it meets neither another test's nor a developer's.
	own := t.TempDir()
	for _, name := range []string{"bin", "pause.tar"} {
		if err := os.Symlink(filepath.Join(home, name), filepath.Join(own, name)); err != nil {
			t.Fatal(err)
		}
	}
	run := func(ctx context.Context, verb string) string {
		cmd := exec.CommandContext(ctx, node, verb)
		cmd.Env = append(os.Environ(), "SOLOIST_E2E_HOME="+own)
		cmd.Stderr = t.Output()
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s %s: %v", node, verb, err)
		}
		return strings.TrimSpace(string(out))
	}
	t.Cleanup(func() { run(context.WithoutCancel(t.Context()), "api-down") })
	return run(t.Context(), "api")
}

// makeObject creates an object and returns its name; namespace "" for one without.
func makeObject(t *testing.T, c *rest.Config, group, resource, namespace string, obj map[string]any) string {
	t.Helper()
	api, err := dynamic.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	out, err := api.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}).
		Namespace(namespace).Create(t.Context(), &unstructured.Unstructured{Object: obj}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return out.GetName()
}

func makeNamespace(t *testing.T, c *rest.Config) string {
	t.Helper()
	return makeObject(t, c, "", "namespaces", "", map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"generateName": "kubelease-"},
	})
}

// grantVerbs returns how to be a user that may do what the package comment promises to be
// enough.
func grantVerbs(t *testing.T, c *rest.Config, namespace string) *rest.Config {
	t.Helper()
	const rbac, user = "rbac.authorization.k8s.io", "pod"
	makeObject(t, c, rbac, "roles", namespace, map[string]any{
		"apiVersion": rbac + "/v1", "kind": "Role", "metadata": map[string]any{"name": user},
		"rules": []any{map[string]any{
			"apiGroups": []any{leases.Group}, "resources": []any{leases.Resource}, "verbs": verbs(t),
		}},
	})
	makeObject(t, c, rbac, "rolebindings", namespace, map[string]any{
		"apiVersion": rbac + "/v1", "kind": "RoleBinding", "metadata": map[string]any{"name": user},
		"roleRef":  map[string]any{"apiGroup": rbac, "kind": "Role", "name": user},
		"subjects": []any{map[string]any{"apiGroup": rbac, "kind": "User", "name": user}},
	})
	c = rest.CopyConfig(c)
	c.Impersonate.UserName = user
	return c
}

// verbs are those of the package comment.
func verbs(t *testing.T) (list []any) {
	t.Helper()
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(doc)) {
		if words, ok := strings.CutPrefix(line, "//\tget "); ok {
			for _, verb := range strings.Fields("get " + words) {
				list = append(list, verb)
			}
		}
	}
	if len(list) == 0 {
		t.Fatal("no verbs in doc.go")
	}
	return list
}
