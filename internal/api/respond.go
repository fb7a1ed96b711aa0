package api

import (
	"net/http"
	"sync"
	"unicode/utf8"
)

// Header values, as they are put into a header without a copy. Nobody writes to them.
var (
	jsonType  = []string{"application/json"}
	eventType = []string{"text/event-stream"}
	noStore   = []string{"no-store"}
)

// A buffer holds one answer. Those in the pool are empty.
type buffer struct{ b []byte }

var buffers = sync.Pool{New: func() any { return &buffer{make([]byte, 0, 512)} }}

// respond sends a JSON body. If the client has gone, there is nobody to tell.
func respond(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h["Content-Type"] = jsonType
	h["Cache-Control"] = noStore
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// fail sends an error: a code for programs, a message for people.
func fail(w http.ResponseWriter, status int, code, message string) {
	failWith(w, status, code, message, nil)
}

// failWith is fail with more fields, each behind a comma.
func failWith(w http.ResponseWriter, status int, code, message string, fields []byte) {
	b := append([]byte(nil), `{"error":`...)
	b = appendString(b, code)
	b = append(b, `,"message":`...)
	b = appendString(b, message)
	b = append(b, fields...)
	respond(w, status, append(b, "}\n"...))
}

const hex = "0123456789abcdef"

// appendString appends s as a JSON string. Names are judged where they come in, but what
// a store tells of others is not ours: so nothing is assumed here.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0 // what is before it has been appended
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 { // no UTF-8, so no JSON either
				b = append(append(b, s[from:i]...), `\ufffd`...)
				from = i + n
			}
			i += n
			continue
		}
		b = append(b, s[from:i]...)
		if c == '"' || c == '\\' {
			b = append(b, '\\', c)
		} else {
			b = append(b, `\u00`...)
			b = append(b, hex[c>>4], hex[c&15])
		}
		i++
		from = i
	}
	return append(append(b, s[from:]...), '"')
}
