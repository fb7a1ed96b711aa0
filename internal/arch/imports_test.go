package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/soloist-dev/soloist/"

// A pkg is what go list says of a package.
type pkg struct {
	ImportPath   string
	Name         string
	Dir          string
	Standard     bool
	Deps         []string // all that it links
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func (p *pkg) tests() []string { return slices.Concat(p.TestImports, p.XTestImports) }

// graph is our packages and all that they link, by short path.
func graph(t *testing.T) map[string]*pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps",
		"-json=ImportPath,Name,Dir,Standard,Deps,Imports,TestImports,XTestImports", "./...")
	cmd.Dir = "../.."
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	pkgs := make(map[string]*pkg)
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		for _, list := range [][]string{p.Deps, p.Imports, p.TestImports, p.XTestImports} {
			for i := range list {
				list[i] = short(list[i])
			}
		}
		pkgs[short(p.ImportPath)] = &p
	}
}

// short writes the packages of this module as in "./internal/lease".
func short(path string) string {
	if rest, ok := strings.CutPrefix(path, module); ok {
		return "./" + rest
	}
	return path
}

// under reports whether path is one of the trees or lies in one.
func under(path string, trees ...string) bool {
	return slices.ContainsFunc(trees, func(tree string) bool {
		return path == tree || strings.HasPrefix(path, tree+"/")
	})
}

// ours are the packages of this module, sorted.
func ours(pkgs map[string]*pkg) []string {
	return slices.Sorted(func(yield func(string) bool) {
		for path := range maps.Keys(pkgs) {
			if under(path, ".") && !yield(path) {
				return
			}
		}
	})
}

const (
	goRedis    = "github.com/redis/go-redis"
	prometheus = "github.com/prometheus"
	controller = "sigs.k8s.io/controller-runtime"
)

// What a package may not link, however indirectly.
func TestLinked(t *testing.T) {
	pkgs := graph(t)
	for _, rule := range []struct {
		from   []string
		banned []string
		why    string
	}{
		{
			[]string{"./cmd/sidecar"},
			[]string{controller, "k8s.io/client-go/kubernetes", "k8s.io/api"},
			"the sidecar is in every pod, and these double its memory and its size",
		},
		{
			[]string{"./cmd/sidecar"},
			[]string{"github.com/bsm/redislock", "github.com/go-redsync", "github.com/redis/rueidis"},
			"peers are for the benchmarks, which are a module of their own",
		},
		{
			[]string{"./cmd/sidecar", "./cmd/injector"},
			[]string{"testing", "github.com/alicebob/miniredis", "./internal/lease/leasetest", "./internal/redistest"},
			"what only tests need is no part of a binary",
		},
		{
			[]string{"./cmd/injector", "./internal/inject"},
			[]string{goRedis, "./internal/lease", "./internal/elector", "./internal/joblock"},
			"the injector changes pods; it neither elects nor locks",
		},
		{
			[]string{"./internal/lease/redislease", "./internal/lease/quorum", "./internal/lease/kubelease"},
			[]string{"./internal/elector", "./internal/joblock", "./internal/api", "./internal/health", "./internal/podmeta", "./internal/metrics", "./internal/config"},
			"a store knows the domain, not who uses it",
		},
		{
			[]string{"./internal/lease/quorum"},
			[]string{goRedis, "./internal/lease/redislease", "./internal/lease/kubelease"},
			"a quorum is made of stores of any kind",
		},
		{
			[]string{"./internal/elector", "./internal/joblock"},
			[]string{"./internal/api", "./internal/health", "./internal/podmeta", "./internal/metrics", "./internal/config", "net/http"},
			"interfaces to the world depend on what they show, not the other way round",
		},
		{
			[]string{"./internal/elector", "./internal/joblock", "./internal/api", "./internal/health", "./internal/podmeta", "./internal/metrics"},
			[]string{goRedis, "./internal/lease/redislease", "./internal/lease/quorum", "./internal/lease/kubelease"},
			"they see the Store port; which store it is, only cmd/sidecar knows",
		},
	} {
		for _, path := range ours(pkgs) {
			if !under(path, rule.from...) {
				continue
			}
			for _, dep := range pkgs[path].Deps {
				if under(dep, rule.banned...) && !under(dep, path) {
					t.Errorf("%s links %s: %s", path, dep, rule.why)
					break // its own dependencies come with it
				}
			}
		}
	}
}

// The domain links the standard library, and x/sys for the clock.
func TestDomainLinksOnlyTheStandardLibrary(t *testing.T) {
	pkgs := graph(t)
	domain := pkgs["./internal/lease"]
	if domain == nil {
		t.Fatal("no internal/lease: has it moved?")
	}
	for _, dep := range domain.Deps {
		if !pkgs[dep].Standard && !under(dep, "golang.org/x/sys") {
			t.Errorf("internal/lease links %s: what is promised must be readable, and testable, on its own", dep)
		}
	}
}

// Who alone may import a package.
func TestImporters(t *testing.T) {
	pkgs := graph(t)
	for _, rule := range []struct {
		banned    []string
		importers []string
		alsoTests bool // whether the rule is for test files, too
		why       string
	}{
		{
			[]string{goRedis}, []string{"./internal/lease/redislease", "./internal/redistest"}, true,
			"its surprises (it ignores deadlines by default, it pings) are dealt with in one place",
		},
		{
			[]string{prometheus}, []string{"./internal/metrics", "./internal/health", "./cmd/sidecar", "./cmd/injector"}, true,
			"metrics are read off snapshots; nothing else counts",
		},
		{
			[]string{controller}, []string{"./cmd/injector", "./internal/inject/webhook", "./e2e"}, true,
			"only the webhook needs it",
		},
		{
			[]string{"./internal/lease/redislease", "./internal/lease/quorum", "./internal/lease/kubelease"},
			[]string{"./cmd/sidecar"}, false,
			"everything meets in cmd/sidecar and nowhere else",
		},
		{
			[]string{"testing", "./internal/lease/leasetest", "./internal/redistest"},
			[]string{"./internal/lease/leasetest", "./internal/redistest", "./e2e"}, false,
			"what only tests need is imported by tests",
		},
	} {
		for _, path := range ours(pkgs) {
			if under(path, rule.importers...) {
				continue
			}
			imports := pkgs[path].Imports
			if rule.alsoTests {
				imports = slices.Concat(imports, pkgs[path].tests())
			}
			for _, dep := range slices.Compact(slices.Sorted(slices.Values(imports))) {
				if under(dep, rule.banned...) && !under(path, dep) {
					t.Errorf("%s imports %s, which only %s may: %s", path, dep, strings.Join(rule.importers, ", "), rule.why)
				}
			}
		}
	}
}
