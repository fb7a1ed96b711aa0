package config

import (
	"net"
	"net/netip"
	"strconv"
)

const localhost = "localhost"

// splitAddress returns the parts of host:port, or what is wrong with it.
func splitAddress(s string, leastPort int) (host string, port int, reason string) {
	host, text, err := net.SplitHostPort(s)
	if err != nil {
		return "", 0, "must be HOST:PORT"
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || int(n) < leastPort {
		return "", 0, "port must be a number from " + strconv.Itoa(leastPort) + " to 65535"
	}
	return host, int(n), ""
}

func isLoopback(host string) bool {
	if host == localhost {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// validate judges the address; a client needs a port, so that its least is 1.
func (h HTTP) validate(p *problems, leastPort int) {
	host, _, reason := splitAddress(h.Address, leastPort)
	if reason == "" && !isLoopback(host) {
		reason = "host must be localhost or a loopback address: who reaches it may resign and unlock"
	}
	if reason != "" {
		p.flag("http-address", "%s, is %q", reason, h.Address)
	}
}

// validateAddresses judges both listeners.
func (c *Config) validateAddresses(p *problems) {
	n := len(*p)
	c.HTTP.validate(p, 0)
	if c.Probe.Address == "" {
		return
	}
	host, port, reason := splitAddress(c.Probe.Address, 0)
	if reason == "" && host != "" && host != localhost {
		if _, err := netip.ParseAddr(host); err != nil {
			reason = "host must be empty, localhost or an IP address"
		}
	}
	if reason != "" {
		p.flag("probe-address", "%s, is %q", reason, c.Probe.Address)
	}
	if len(*p) > n {
		return
	}
	_, other, _ := splitAddress(c.HTTP.Address, 0)
	if port == other && port != 0 && (reachesAll(host) || isLoopback(host)) {
		p.flag("probe-address", "must have another port than %s, is %q", mention("http-address"), c.Probe.Address)
	}
}

// reachesAll reports whether host stands for all addresses of the machine.
func reachesAll(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

// warnings returns what is allowed and hardly meant.
func (c *Config) warnings(env map[string]string) []string {
	if c.Verb != Elect || env["KUBERNETES_SERVICE_HOST"] == "" {
		return nil
	}
	if host, _, reason := splitAddress(c.Probe.Address, 0); reason == "" && isLoopback(host) {
		return []string{mention("probe-address") + " is a loopback address, which the kubelet can't reach: probes will fail"}
	}
	return nil
}
