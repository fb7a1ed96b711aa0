package redistest

import (
	"bytes"
	"errors"
	"io"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

func TestReader(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in    string
		kind  byte
		value any
	}{
		{"+OK\r\n", '+', "OK"},
		{"-ERR no\r\n", '-', Error("ERR no")},
		{":-42\r\n", ':', int64(-42)},
		{"$5\r\na\r\nb\x00\r\n", '$', "a\r\nb\x00"},
		{"$0\r\n\r\n", '$', ""},
		{"$-1\r\n", '$', nil},
		{"*-1\r\n", '*', nil},
		{"*0\r\n", '*', []any{}},
		{"*3\r\n:1\r\n$-1\r\n*1\r\n-E\r\n", '*', []any{int64(1), nil, []any{Error("E")}}},
		{"_\r\n", '_', nil},
		{"#t\r\n", '#', true},
		{"#f\r\n", '#', false},
		{",1.5e3\r\n", ',', 1500.0},
		{",-inf\r\n", ',', math.Inf(-1)},
		{"(-12345678901234567890123\r\n", '(', "-12345678901234567890123"},
		{"=8\r\ntxt:text\r\n", '=', "text"},
		{"!5\r\nERR x\r\n", '!', Error("ERR x")},
		{"%2\r\n+a\r\n:1\r\n+b\r\n:2\r\n", '%', []any{"a", int64(1), "b", int64(2)}},
		{"~2\r\n+a\r\n+b\r\n", '~', []any{"a", "b"}},
		{">3\r\n+message\r\n+c\r\n$1\r\nm\r\n", '>', []any{"message", "c", "m"}},
		{"|1\r\n+ttl\r\n:9\r\n:7\r\n", ':', int64(7)},
		{"*2\r\n|1\r\n+a\r\n*0\r\n+x\r\n+y\r\n", '*', []any{"x", "y"}},
		{"+" + strings.Repeat("long ", 5000) + "\r\n", '+', strings.Repeat("long ", 5000)},
	}
	for _, test := range tests {
		in := newReader(strings.NewReader(test.in + "+next\r\n"))
		m, err := in.next()
		if err != nil || m.kind != test.kind || !reflect.DeepEqual(m.value, test.value) || string(m.raw) != test.in {
			t.Errorf("%.60q: kind %c, value %#v, raw %.60q, error %v", test.in, m.kind, m.value, m.raw, err)
		}
		if m, err = in.next(); err != nil || m.value != "next" {
			t.Errorf("%.60q: then %v, %v", test.in, m.value, err)
		}
		// Each beginning of it is not a protocol error, but an end too soon.
		for i := range min(len(test.in), 200) {
			if _, err := newReader(strings.NewReader(test.in[:i])).next(); !errors.Is(err, io.EOF) {
				t.Errorf("%q: %v", test.in[:i], err)
			}
		}
	}
}

func TestReaderRefuses(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"\r\n", "PING\r\n", "+OK\n", "+a\rb\r\n", ":x\r\n", ":1e3\r\n", ":99999999999999999999\r\n",
		"#true\r\n", "_x\r\n", ",one\r\n", ",1e999\r\n",
		"$x\r\n", "$-2\r\n", "$1\r\nabc", "$536870913\r\n", "*-2\r\n", "*9999999999\r\n",
		"%-1\r\n", "~-1\r\n", ">-1\r\n", "|-1\r\n", "=-1\r\n", "!-1\r\n",
		"=3\r\ntxt\r\n", "=5\r\ntxt;x\r\n", "$?\r\n", "*?\r\n", "?\r\n",
		strings.Repeat("*1\r\n", maxDepth+2), "+" + strings.Repeat("x", maxLine+10000) + "\r\n",
	} {
		if m, err := newReader(strings.NewReader(in)).next(); !errors.Is(err, errProtocol) {
			t.Errorf("%.60q: %v, %v", in, m.value, err)
		}
	}
	for _, in := range []string{"+PING\r\n", "*1\r\n:1\r\n", "*1\r\n$-1\r\n", "~1\r\n$1\r\na\r\n"} {
		if args, _, err := newReader(strings.NewReader(in)).command(); !errors.Is(err, errProtocol) {
			t.Errorf("request %q: %q, %v", in, args, err)
		}
	}
}

// A header alone must not make the reader reserve what it announces. Not parallel:
// it counts what the whole process reserves.
func TestReaderMemory(t *testing.T) {
	for _, in := range []string{"$536870912\r\nx", "*1073741824\r\n", "%1073741824\r\n:1\r\n"} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := newReader(strings.NewReader(in)).next()
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 || !errors.Is(err, io.EOF) {
			t.Errorf("%q: %d bytes reserved, %v", in, n, err)
		}
	}
}

// What the reader accepts it has taken whole and exactly, and reads again alike;
// what it takes for a request it could have written.
func FuzzReader(f *testing.F) {
	for _, in := range []string{
		"+OK\r\n", "*2\r\n$4\r\nPING\r\n$1\r\nx\r\n", "|1\r\n+a\r\n:1\r\n>2\r\n+b\r\n_\r\n",
		"%1\r\n=5\r\ntxt:a\r\n,inf\r\n", "~1\r\n(1\r\n", "!3\r\nERR\r\n", "#t\r\n", "$-1\r\n",
	} {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		m, err := newReader(bytes.NewReader(in)).next()
		if !bytes.HasPrefix(in, m.raw) {
			t.Fatalf("raw %q", m.raw)
		}
		if err != nil {
			if !errors.Is(err, errProtocol) && !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			return
		}
		again, err := newReader(bytes.NewReader(m.raw)).next()
		if err != nil || again.kind != m.kind || !reflect.DeepEqual(nanless(again.value), nanless(m.value)) {
			t.Fatalf("again: %v, not %v: %v", again.value, m.value, err)
		}
		args, raw, err := newReader(bytes.NewReader(in)).command()
		if err != nil {
			return
		}
		if !bytes.Equal(raw, m.raw) {
			t.Fatalf("request %q", raw)
		}
		written, _, err := newReader(bytes.NewReader(appendCommand(nil, args))).command()
		if err != nil || !reflect.DeepEqual(written, args) {
			t.Fatalf("%q became %q: %v", args, written, err)
		}
	})
}

// nanless makes NaN equal to itself.
func nanless(v any) any {
	switch v := v.(type) {
	case float64:
		if math.IsNaN(v) {
			return "NaN"
		}
	case []any:
		for i := range v {
			v[i] = nanless(v[i])
		}
	}
	return v
}
