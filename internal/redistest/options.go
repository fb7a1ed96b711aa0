package redistest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// An Option changes how Start configures the server.
type Option func(*config)

type config struct {
	lines    []string
	args     []string // behind the file's name
	password string
	tls      bool
	certs    *certs // another server's; nil: its own
	debug    bool
	port     func() int
}

// AppendOnly makes the server write each command to disk before it answers
// (appendfsync always), so that its data survives Kill.
func AppendOnly() Option {
	return ConfigLines("appendonly yes", "appendfsync always")
}

// ConfigLines adds lines of redis.conf. A later line wins over an earlier one and
// over what this package writes.
func ConfigLines(lines ...string) Option {
	return func(c *config) { c.lines = append(c.lines, lines...) }
}

// MaxMemory limits the server's memory, as in MaxMemory("20mb", "allkeys-lru").
func MaxMemory(limit, policy string) Option {
	return ConfigLines("maxmemory "+limit, "maxmemory-policy "+policy)
}

// RequirePass gives the default user a password. URL then contains it.
func RequirePass(password string) Option {
	return func(c *config) { c.password = password }
}

// User adds an ACL user, as in User("app", "on >secret ~soloist:* &* +@all"). The
// user "redistest" exists always, for Do; an aclfile is therefore not possible.
func User(name, rules string) Option {
	return ConfigLines("user " + name + " " + rules)
}

// TLS makes Addr speak TLS only, with certificates made for this server. A client
// certificate is checked if there is one; ConfigLines("tls-auth-clients yes")
// demands it. The unix socket stays plain.
func TLS() Option {
	return func(c *config) { c.tls = true }
}

// EnableDebug allows the command DEBUG.
func EnableDebug() Option {
	return func(c *config) { c.debug = true }
}

// writeConfig writes the file that the server is started with.
func (s *Server) writeConfig() error {
	lines := []string{
		"bind 127.0.0.1",
		fmt.Sprintf("unixsocket %q", s.Socket()),
		"unixsocketperm 700",
		fmt.Sprintf("dir %q", s.dir),
		`save ""`,
		"appendonly no",
		fmt.Sprintf("user %s on >%s ~* &* +@all", adminUser, s.adminPassword),
	}
	if s.cfg.password != "" {
		lines = append(lines, fmt.Sprintf("requirepass %q", s.cfg.password))
	}
	if s.cfg.debug && s.major >= 7 { // Before 7.0 DEBUG was always allowed.
		lines = append(lines, "enable-debug-command yes")
	}
	if s.cfg.tls {
		lines = append(lines,
			"port 0",
			fmt.Sprintf("tls-port %d", s.port),
			fmt.Sprintf("tls-ca-cert-file %q", s.certs.files.CA),
			fmt.Sprintf("tls-cert-file %q", filepath.Join(s.certs.dir, "server.crt")),
			fmt.Sprintf("tls-key-file %q", filepath.Join(s.certs.dir, "server.key")),
			"tls-auth-clients optional",
		)
	} else {
		lines = append(lines, fmt.Sprintf("port %d", s.port))
	}
	lines = append(lines, s.cfg.lines...)
	text := strings.Join(lines, "\n") + "\n"
	return os.WriteFile(s.confFile(), []byte(text), 0o600)
}
