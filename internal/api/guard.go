package api

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// guard refuses what a web page sent, and bounds the body. It reports whether the
// request may go on.
func (s *Server) guard(w http.ResponseWriter, r *http.Request) bool {
	if !loopbackHost(r.Host) {
		fail(w, http.StatusForbidden, "host", "the Host header must name a loopback address, such as localhost")
		return false
	}
	if s.foreign.Check(r) != nil {
		fail(w, http.StatusForbidden, "cross_site", "a web page from elsewhere may not change anything here")
		return false
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout)) // decode lifts it
	return true
}

// loopbackHost reports whether a Host header names this machine, with or without a port.
// One that is empty does: no browser sends that.
func loopbackHost(host string) bool {
	if host == "" {
		return true
	}
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
		if n := len(host) - 1; host[0] == '[' && host[n] == ']' {
			name = host[1:n]
		}
	}
	return strings.EqualFold(name, localhost) || loopbackIP(name)
}

func loopbackIP(name string) bool {
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.Unmap().IsLoopback()
}
