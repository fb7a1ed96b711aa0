package api

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/soloist-dev/soloist/internal/joblock"
	"github.com/soloist-dev/soloist/internal/lease/leasetest"
)

// Whatever is sent to the routes of job locks, the answer is JSON, with a code that is
// documented, and nothing is held that nobody was given a token of.
func FuzzLocks(f *testing.F) {
	for _, c := range [][3]string{
		{"POST", "/locks/a", `{"owner":"w1","reenter":true,"request":"id","lease":"30s","slots":20,"after":3}`},
		{"POST", "/locks/a/b", `{"once":"2026-11-21","keep":"168h","at_least_for":"5s","at_most_for":"1h"}`},
		{"POST", "/locks/a%2Fb/release", `{"token":"0123456789abcdef0123456789abcdef?slot=1&slots=2","done":true}`},
		{"PUT", "/locks/a", `{"token":"0123456789abcdef0123456789abcdef"}`},
		{"DELETE", "/locks/release", `{}`},
		{"GET", "/locks/a", ``},
		{"GET", "/locks", ``},
		{"POST", "/rate/a", `{"rate":"5/1m","cost":5}`},
		{"POST", "/locks//hold/release", `{"wait":"0s"}`},
		{"POST", "/locks/%zz", "\x00"},
		{"POST", "/locks/a", `{"slots":1e9}`},
	} {
		f.Add(c[0], c[1], c[2])
	}
	known := []string{
		"invalid", "done", "held", "kind", "released", "limit", "unknown", "closing", "lost", "rate", "not_found", "method", "too_large", "timeout",
	}
	f.Fuzz(func(t *testing.T, method, path, body string) {
		if !slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH"}, method) || !strings.HasPrefix(path, "/") ||
			strings.ContainsAny(path, " \r\n\t\x00") || strings.HasSuffix(path, holdAction) || strings.Contains(body, "wait") {
			return
		}
		m := leasetest.NewMemory(leasetest.Config{})
		locks := joblock.New(joblock.Config{Store: m})
		defer locks.Close(t.Context(), 0)
		s := New(Config{Locks: locks, Store: m, Limiter: unlimited{}})
		defer func() { // httptest refuses what is no URL
			if r := recover(); r != nil && !strings.Contains(strings.ToLower(toString(r)), "invalid") {
				panic(r)
			}
		}()
		w := ask(t, s, method, path, body)
		if method == "HEAD" || w.Body.Len() == 0 {
			return
		}
		var g got
		if err := json.Unmarshal(w.Body.Bytes(), &g); err != nil {
			t.Fatalf("%s %q: %d %q: %v", method, path, w.Code, w.Body, err)
		}
		if (w.Code >= 400) != (g.Error != "") || g.Error != "" && !slices.Contains(known, g.Error) {
			t.Fatalf("%s %q %q: %d %s", method, path, body, w.Code, w.Body)
		}
		if n := len(locks.List()); n > 0 && (method != "POST" || g.Token == "") {
			t.Fatalf("%s %q %q: %s, and %d are held", method, path, body, w.Body, n)
		}
	})
}

func toString(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}
