package arch

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the top of the repository; these rules are for all its modules.
var root = os.DirFS("../..")

// files calls visit with the path and content of each file with that ending.
func files(t *testing.T, ext string, visit func(name string, content []byte)) {
	t.Helper()
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := filepath.Base(name)
		if d.IsDir() {
			if base == "testdata" || base == "bin" || len(base) > 1 && base[0] == '.' {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ext {
			return nil
		}
		content, err := fs.ReadFile(root, name)
		if err == nil {
			visit(name, content)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

func TestFileLength(t *testing.T) {
	const limit = 400
	files(t, ".go", func(name string, content []byte) {
		n := bytes.Count(content, []byte("\n"))
		if n > limit && !strings.HasSuffix(name, "_test.go") && !generated.Match(content) {
			t.Errorf("%s has %d lines, more than %d: what is hard to check hides in long files", name, n, limit)
		}
	})
}

func TestPackages(t *testing.T) {
	nameless := []string{"util", "utils", "helper", "helpers", "common", "base", "misc", "shared", "pkg", "types", "models", "http"}
	comments := make(map[string][]string) // directory to the files that have a package comment
	inTests := make(map[string]bool)      // directory to whether it has test files only
	files(t, ".go", func(name string, content []byte) {
		f, err := parser.ParseFile(token.NewFileSet(), name, content, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Error(err)
			return
		}
		dir, test := filepath.Dir(name), strings.HasSuffix(name, "_test.go")
		if !test && slices.Contains(nameless, f.Name.Name) {
			t.Errorf("%s: package %s: a package is named for what it provides", name, f.Name.Name)
		}
		if only, seen := inTests[dir]; !seen || only {
			inTests[dir] = test
		}
		if !test && f.Doc.Text() != "" {
			comments[dir] = append(comments[dir], filepath.Base(name))
		}
	})
	for dir, testsOnly := range inTests {
		if n := len(comments[dir]); n != 1 && !testsOnly {
			t.Errorf("%s has %d package comments %v, not one", dir, n, comments[dir])
		}
	}
}

// A test that sleeps in real time is slow when it passes and fails when the machine is
// slow. In a bubble of testing/synctest sleeping costs nothing, so a file that imports it
// may, and what is handed to a function called bubble; elsewhere the line says "real time:"
// and why.
func TestSleeps(t *testing.T) {
	files(t, ".go", func(name string, content []byte) {
		if !strings.HasSuffix(name, "_test.go") {
			return // the linter sees to the others
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, content, parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			return
		}
		if slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"testing/synctest"` }) {
			return
		}
		lines := bytes.Split(content, []byte("\n"))
		ast.Inspect(f, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if f, ok := call.Fun.(*ast.Ident); ok && f.Name == "bubble" {
					return false
				}
			}
			if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Sleep" {
				x, ok := s.X.(*ast.Ident)
				at := fset.Position(n.Pos())
				if ok && x.Name == "time" && !bytes.Contains(lines[at.Line-1], []byte("// real time: ")) {
					t.Errorf("%s: time.Sleep outside of a bubble: wait for what should happen, or say \"// real time: …\"", at)
				}
			}
			return true
		})
	})
}

var (
	luaComment = regexp.MustCompile(`--[^\n]*`)
	luaLock    = `(?:lk\b|KEYS\[)` // how the scripts call the key of a slot
	luaWrites  = regexp.MustCompile(`redis\.call\('(?:SET|DEL|PEXPIRE)',\s*` + luaLock)
	luaExpires = regexp.MustCompile(`redis\.call\('PEXPIRE',\s*` + luaLock)
	luaSets    = regexp.MustCompile(`redis\.call\('SET',[^\n]*`)
)

// scriptsWithoutToken write without a token, for a reason.
var scriptsWithoutToken = map[string]string{
	"common.lua": "functions for the scripts, which compare before they call them",
	"revoke.lua": "ends a stranger's lease: that is what it is for",
	"rate.lua":   "its only key is no slot",
}

// The scripts are the only writers to a lock.
func TestScripts(t *testing.T) {
	files(t, ".lua", func(name string, content []byte) {
		code := luaComment.ReplaceAllString(string(content), "")
		if luaWrites.MatchString(code) && scriptsWithoutToken[filepath.Base(name)] == "" && !strings.Contains(code, "mine(") {
			t.Errorf("%s writes to a slot, but never compares the token: it could end a stranger's lease", name)
		}
		for line := range strings.Lines(code) {
			if luaExpires.MatchString(line) && !strings.Contains(line, "<") {
				t.Errorf("%s: %s: without a comparison with what is left this may shorten a live lease", name, strings.TrimSpace(line))
			}
		}
		for _, call := range luaSets.FindAllString(code, -1) {
			if !strings.Contains(call, "'PX'") && !strings.Contains(call, "'KEEPTTL'") {
				t.Errorf("%s: %s: every key expires", name, call)
			}
		}
	})
}
