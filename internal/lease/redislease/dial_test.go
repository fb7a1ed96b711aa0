package redislease

import (
	"bytes"
	"context"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/soloist-dev/soloist/internal/redistest"
)

// slowNames has every name looked up in d, and gives all of them 127.0.0.1.
func slowNames(t *testing.T, d time.Duration) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var answers sync.WaitGroup
	answers.Go(func() {
		for {
			query := make([]byte, 512)
			n, from, err := conn.ReadFrom(query)
			if err != nil {
				return
			}
			answers.Go(func() {
				select {
				case <-time.After(d):
				case <-t.Context().Done():
				}
				_, _ = conn.WriteTo(answer(query[:n]), from)
			})
		}
	})
	before := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	t.Cleanup(func() {
		net.DefaultResolver = before
		_ = conn.Close()
		answers.Wait()
	})
}

// answer is what a name server says to a query for one name (RFC 1035, section 4).
func answer(query []byte) []byte {
	const header = 12
	end := header + bytes.IndexByte(query[header:], 0) + 1 + 4 // the name, its type and class
	a := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, query[header:end]...)
	if query[end-3] == 1 { // A, not AAAA
		a[7] = 1
		a = append(a, 0xc0, header, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1)
	}
	return a
}

// A name server that takes longer than a call does not keep the store out: the lookup
// goes on when the call has given up, and the next one finds the connection.
func TestSlowNames(t *testing.T) {
	const call = 100 * time.Millisecond
	server := redistest.Start(t)
	u, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	slowNames(t, 3*call)
	u.Host = net.JoinHostPort("redis.test.", u.Port())
	s := open(t, u.String(), func(o *Options) { o.CallTimeout = call })
	failures := 0
	until(t, "an answer", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), call)
		defer cancel()
		_, err := s.Inspect(ctx, "a")
		if err != nil {
			failures++
		}
		return err == nil
	})
	if failures == 0 {
		t.Error("no call failed: the names were not slow")
	}
	in, err := s.Join(t.Context(), "a") // the inbox's own connection
	if err != nil {
		t.Fatalf("Join: %v", err)
	}
	in.Leave()
}
