package api

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/soloist-dev/soloist/internal/elector"
)

func FuzzResign(f *testing.F) {
	for _, body := range []string{
		"", "{}", "null", `{"done":true,"hold_off":"30s","fence":42}`, `{"fence":0}`, `{"Done":true}`, `{"x":1}`, `{} {}`, "[", "\x00",
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		e := &resigning{fixed: says(t, following())}
		w := ask(t, New(Config{Elections: []Election{e}}), "POST", "/resign", body)
		switch w.Code {
		case 202:
			want(t, w, 202, standbyBody+"\n")
			if len(e.got) != 1 || e.got[0].HoldOff < 0 {
				t.Fatalf("%+v", e.got)
			}
			var fields map[string]any
			if strings.Trim(body, " \t\r\n") == "" {
				return
			}
			if err := json.Unmarshal([]byte(body), &fields); err != nil || fields == nil {
				t.Fatalf("taken for an object: %q", body)
			}
			for name := range fields {
				if !strings.EqualFold(name, "done") && !strings.EqualFold(name, "hold_off") && !strings.EqualFold(name, "fence") {
					t.Fatalf("unknown field %q", name)
				}
			}
			if fields["done"] == true && !e.got[0].Done {
				t.Fatalf("%q: %+v", body, e.got)
			}
		case 413:
			wantCode(t, w, 413, "too_large")
		default:
			wantCode(t, w, 400, "invalid")
			if len(e.got) != 0 {
				t.Fatalf("%q: refused, and done", body)
			}
		}
	})
}

func FuzzLeaderQuery(f *testing.F) {
	for _, query := range []string{
		"", "lock=city-ids", "lock=x", "wait=30s", "version=1", "wait=1ns&version=1763683200123999", "wait=1h&version=1763683200123999",
		"%", "a;b", "wait=9999999h", "lock=city-ids&lock=x", "&&&", "wait=-1s", "version=99999999999999999999",
	} {
		f.Add(query)
	}
	e := says(f, leading())
	s := New(Config{Elections: []Election{e}})
	f.Fuzz(func(t *testing.T, query string) {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/leader", nil)
		r.URL.RawQuery = query
		gone, cancel := context.WithCancel(t.Context())
		cancel() // so that nothing waits
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r.WithContext(gone))
		switch w.Code {
		case 200:
			if got := w.Body.String(); got == "" {
				values, _ := url.ParseQuery(query)
				if d, err := time.ParseDuration(values.Get("wait")); err != nil || d <= 0 {
					t.Fatalf("%q waits", query)
				}
			} else if got != leaderBody+"\n" {
				t.Fatal(got)
			}
		case 404:
			wantCode(t, w, 404, "unknown_lock")
		default:
			wantCode(t, w, 400, "invalid")
		}
		if n := s.streams.Load(); n != 0 {
			t.Fatalf("%d polls left", n)
		}
	})
}

// Whatever a store tells of a holder, the body is JSON and an event is one line of data.
func FuzzNames(f *testing.F) {
	for _, name := range []string{"pod-b", "", `a"b\c`, "\n\r\t\x00\x7f", "é€😀\u2028", "\xff\xc3", "</script>"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		v := following()
		v.Holder, v.Reason = name, elector.Reason(name)
		encoded, err := json.Marshal(name)
		if err != nil {
			t.Fatal(err)
		}
		var expected string
		if err := json.Unmarshal(encoded, &expected); err != nil {
			t.Fatal(err)
		}
		var got struct{ Holder, Reason string }
		b := appendView(nil, &v)
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatalf("%v: %q", err, b)
		}
		if got.Reason != expected || got.Holder != expected && name != v.Name {
			t.Fatalf("%q: %+v, want %q", name, got, expected)
		}
		event := string(appendEvent(nil, &v))
		if strings.Count(event, "\n") != 4 || strings.Contains(event, "\r") {
			t.Fatalf("%q", event)
		}
	})
}
