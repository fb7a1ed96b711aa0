package config

import (
	"errors"
	"net"
	"net/url"
	"strings"
)

// What may follow redis or rediss in a scheme.
const (
	sentinel = "+sentinel"
	cluster  = "+cluster"
)

// Servers says which servers a URL names, and how they work together.
type Servers struct {
	// URL holds the user and the database, and by its scheme says whether there is TLS. If
	// neither of the lists is set it names the only server.
	URL string
	// Sentinels know which server is the Master of that name now.
	Sentinels []string
	Master    string
	// Cluster are some nodes of a Redis Cluster, enough to find the others.
	Cluster []string
}

// Servers takes the URL apart, which must be valid.
func (u StoreURL) Servers() Servers {
	hosts, single := splitHosts(u.Reveal())
	p, err := url.Parse(single)
	if err != nil {
		return Servers{URL: u.Reveal()} // for the store to refuse
	}
	base, kind, _ := strings.Cut(p.Scheme, "+")
	if kind == "" {
		return Servers{URL: u.Reveal()}
	}
	s := Servers{}
	if "+"+kind == sentinel {
		s.Sentinels, s.Master = withPort(hosts, "26379"), strings.Trim(p.Path, "/")
	} else {
		s.Cluster = withPort(hosts, "6379")
	}
	p.Scheme, p.Path = base, ""
	s.URL = p.String()
	return s
}

// splitHosts returns the hosts that are listed in a URL, and the URL with the first alone,
// since no URL that net/url knows has several.
func splitHosts(raw string) (hosts []string, single string) {
	_, after, _ := strings.Cut(raw, "://")
	from, end := len(raw)-len(after), len(raw)
	if i := strings.IndexAny(raw[from:], "/?#"); i >= 0 {
		end = from + i
	}
	if i := strings.LastIndex(raw[from:end], "@"); i >= 0 {
		from += i + 1
	}
	hosts = strings.Split(raw[from:end], ",")
	return hosts, raw[:from] + hosts[0] + raw[end:]
}

// judgeSeveral judges a URL with Sentinels or nodes of a cluster.
func judgeSeveral(p *url.URL, hosts []string) error {
	for _, host := range hosts {
		one, err := url.Parse("redis://" + host)
		if err != nil || one.Path != "" || one.User != nil {
			return errors.New("hosts must be HOST:PORT,HOST:PORT and so on")
		}
		if err := judgeHost(one); err != nil {
			return err
		}
	}
	path := strings.Trim(p.Path, "/")
	if strings.HasSuffix(p.Scheme, cluster) {
		if path != "" || p.RawQuery != "" {
			return errors.New("may hold nothing behind the hosts: a cluster has one database")
		}
		return judgeQuery(p)
	}
	if path == "" || strings.ContainsAny(path, "/ \t\r\n") {
		return errors.New("must name the master that the Sentinels watch: redis+sentinel://HOST:26379,HOST:26379/NAME")
	}
	return judgeQuery(p)
}

// withPort adds the usual port to hosts without one.
func withPort(hosts []string, port string) []string {
	var all []string
	for _, host := range hosts {
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(strings.Trim(host, "[]"), port)
		}
		all = append(all, host)
	}
	return all
}
