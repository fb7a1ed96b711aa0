package config

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// StoreCheck says what follows if the store is set up so that it may lose leases.
type StoreCheck string

const (
	CheckStrict StoreCheck = "strict" // a store that may evict locks is not campaigned on
	CheckWarn   StoreCheck = "warn"   // a log line
)

// DelayedRestart says what to do about a store that started less than a lease ago, and
// may have forgotten the leases that it had granted before.
type DelayedRestart string

const (
	DelayAuto DelayedRestart = "auto" // wait, unless it has an append-only file
	DelayOn   DelayedRestart = "on"   // wait always
	DelayOff  DelayedRestart = "off"  // never wait
)

// Store says where the leases are kept.
type Store struct {
	URLs     []StoreURL // --store; this version takes exactly one
	Username string     // --store-username; "": the URL's
	Password Secret     // SOLOIST_STORE_PASSWORD; empty: the URL's
	// SentinelPassword is SOLOIST_SENTINEL_PASSWORD; empty: Sentinels are asked without.
	SentinelPassword Secret
	// PasswordFile is read for every new connection, so that a password can change without
	// a restart. White space around it is dropped. "": none.
	PasswordFile string
	TLS          TLSFiles
	// KeyPrefix begins every key and channel, default soloist. Sidecars with different
	// prefixes do not see each other.
	KeyPrefix      string
	Check          StoreCheck     // default CheckStrict
	DelayedRestart DelayedRestart // default DelayAuto
}

// StoreURL is the URL of a store. It may hold a password, so it prints without its user
// part, and as REDACTED where it can't be told what is what.
type StoreURL struct{ raw Secret }

// NewStoreURL returns s as a StoreURL, whatever it holds; [Config.Validate] judges it.
func NewStoreURL(s string) StoreURL { return StoreURL{NewSecret(s)} }

// Reveal returns the URL as it was given, password included.
func (u StoreURL) Reveal() string { return u.raw.Reveal() }

// String returns the URL without secrets.
func (u StoreURL) String() string {
	p, err := u.parse()
	if err != nil || strings.Contains(p.Path, "@") {
		return u.raw.String()
	}
	if p.Scheme == "kubernetes" {
		return u.Reveal() // a namespace at most
	}
	if p.User != nil {
		p.User = url.User(redacted)
	}
	return p.String()
}

// Format implements [fmt.Formatter] for every verb.
func (u StoreURL) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, u.String()) }

// LogValue implements [slog.LogValuer].
func (u StoreURL) LogValue() slog.Value { return slog.StringValue(u.String()) }

// MarshalText implements [encoding.TextMarshaler], which encoding/json uses.
func (u StoreURL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// user returns the user name, and whether there is a password. Both are zero if u is no
// URL.
func (u StoreURL) user() (name string, password bool) {
	_, single := splitHosts(u.Reveal())
	p, err := url.Parse(single)
	if err != nil || p.User == nil {
		return "", false
	}
	secret, _ := p.User.Password()
	return p.User.Username(), secret != ""
}

// Kubernetes begins the URL of Lease objects, in the pod's own namespace or in the one
// that follows.
const Kubernetes = "kubernetes://"

const defaultPrefix = "soloist"

// Namespace returns the namespace of Lease objects, and whether u is of such at all. "":
// the pod's own.
func (u StoreURL) Namespace() (string, bool) { return strings.CutPrefix(u.Reveal(), Kubernetes) }

// parse judges the URL by itself. Its errors quote nothing of it but a known scheme: what
// looks like a port or a path may be the rest of a password that was not escaped.
func (u StoreURL) parse() (*url.URL, error) {
	raw := u.Reveal()
	if !strings.Contains(raw, "://") {
		return nil, errors.New("must be a URL, such as redis://HOST:6379")
	}
	if namespace, ok := u.Namespace(); ok {
		if namespace != "" && !namespaceName.MatchString(namespace) {
			return nil, errors.New("must be kubernetes:// alone, or with a namespace and nothing else: kubernetes://NAMESPACE")
		}
		return &url.URL{Scheme: "kubernetes", Host: namespace}, nil
	}
	hosts, single := splitHosts(raw)
	p, err := url.Parse(single)
	if err != nil {
		return nil, errors.New("is not a valid URL; in a password, characters other than letters, digits " +
			"and -._~ must be escaped as %XX")
	}
	switch p.Scheme {
	case "redis", "rediss":
		if len(hosts) > 1 {
			return p, errors.New("has several hosts: use redis+sentinel:// or redis+cluster://, or give --store several times for a quorum")
		}
		return p, judgeTCP(p)
	case "redis" + sentinel, "rediss" + sentinel, "redis" + cluster, "rediss" + cluster:
		err := judgeSeveral(p, hosts)
		p.Host = strings.Join(hosts, ",")
		return p, err
	case "unix":
		if p.Host != "" || len(p.Path) < 2 {
			return nil, errors.New("must hold the absolute path of a socket: unix:///PATH, or unix://USER:PASSWORD@/PATH")
		}
		return p, judgeQuery(p)
	default:
		return nil, errors.New("scheme must be redis, rediss (TLS), redis+sentinel, redis+cluster, unix or kubernetes")
	}
}

// Names of Kubernetes: of a namespace (DNS-1123 label) and of a Lease (DNS-1123 subdomain).
var (
	namespaceName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	leaseName     = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
)

// validateLeases demands what Lease objects can keep.
func (c *Config) validateLeases(p *problems) {
	if len(c.Store.URLs) != 1 {
		return
	}
	namespace, ok := c.Store.URLs[0].Namespace()
	if !ok {
		return
	}
	if namespace == "" && c.Identity.Namespace == "" {
		p.flag("store", "%s does not know its namespace: set POD_NAMESPACE, or name it: %sNAMESPACE", Kubernetes, Kubernetes)
	}
	if c.Store.KeyPrefix != defaultPrefix {
		p.flag("key-prefix", "has no meaning with %s, where a lock is the Lease of its name: remove it", Kubernetes)
	}
	for _, e := range c.Elections {
		if e.Slots > 0 {
			p.flag("lock", "%s has slots, which %s can't keep: use Redis", e.Lock, Kubernetes)
		} else if e.Lock != "" && !leaseName.MatchString(e.Lock) {
			p.flag("lock", "%s can't be the name of a Lease (a-z 0-9 - . only): rename it, or use Redis", e.Lock)
		}
	}
	if c.Store.Username != "" || !c.Store.Password.IsZero() || c.Store.PasswordFile != "" {
		p.flag("store", "%s takes no user and no password: the pod's service account counts", Kubernetes)
	}
}

func judgeTCP(p *url.URL) error {
	if err := judgeHost(p); err != nil {
		return err
	}
	if db := strings.Trim(p.Path, "/"); db != "" && !isDatabase(db) {
		return errors.New("path must be empty or the number of a database: redis://HOST:6379/0")
	}
	return judgeQuery(p)
}

func judgeHost(p *url.URL) error {
	switch {
	case p.Hostname() == "":
		return errors.New("has no host")
	case strings.Contains(p.Host, "$("):
		return errors.New("holds a $(VARIABLE) that nothing has replaced: " +
			"Kubernetes replaces those that are declared before it in the same container")
	}
	if port := p.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return errors.New("port must be 1 to 65535")
		}
	}
	return nil
}

// judgeQuery allows no options: timeouts, retries and pools are not the user's to set, and
// skip_verify would hide that the peer is not who it seems.
func judgeQuery(p *url.URL) error {
	if p.Fragment != "" {
		return errors.New("has a part after #; in a password, # must be escaped as %23")
	}
	if p.RawQuery == "" {
		return nil
	}
	if db, ok := strings.CutPrefix(p.RawQuery, "db="); !ok || !isDatabase(db) {
		return errors.New("may hold no option but ?db=N; in a password, ? must be escaped as %3F")
	}
	return nil
}

func isDatabase(s string) bool {
	_, err := strconv.ParseUint(s, 10, 31)
	return err == nil
}

func (s Store) validate(p *problems) {
	secure := false
	switch len(s.URLs) {
	case 0:
		p.flag("store", "must say where the locks are kept, such as redis://HOST:6379; in a cluster it is %s by itself", Kubernetes)
	case 1:
		u, err := s.URLs[0].parse()
		if err != nil {
			p.flag("store", "%v", err)
			break
		}
		secure = strings.HasPrefix(u.Scheme, "rediss")
		if u.Scheme != "kubernetes" {
			s.validateUser(p)
		}
	default:
		p.flag("store", "several URLs, %d here, are not supported by this version", len(s.URLs))
	}
	if !s.SentinelPassword.IsZero() && !(len(s.URLs) == 1 && len(s.URLs[0].Servers().Sentinels) > 0) {
		p.add(sentinelEnv, "goes with redis+sentinel://")
	}
	if s.TLS != (TLSFiles{}) && len(s.URLs) > 0 && !secure {
		p.add(s.TLS.mention(), "needs a rediss:// URL in %s", mention("store"))
	}
	if (s.TLS.Cert == "") != (s.TLS.Key == "") {
		p.add(mention("tls-cert-file")+", "+mention("tls-key-file"), "one needs the other")
	}
	if k := s.KeyPrefix; k == "" || len(k) > 100 || hasSpace(k) || strings.ContainsAny(k, "{}") {
		p.flag("key-prefix", "must be 1 to 100 bytes without white space and braces, is %q", k)
	}
}

// validateUser demands one password at most, and one for a user: without it the client
// would not even send the name.
func (s Store) validateUser(p *problems) {
	name, inURL := s.URLs[0].user()
	const inFile = "--store-password-file (SOLOIST_STORE_PASSWORD_FILE)"
	var from []string
	if inURL {
		from = append(from, "the URL in "+mention("store"))
	}
	if !s.Password.IsZero() {
		from = append(from, passwordEnv)
	}
	if s.PasswordFile != "" {
		from = append(from, inFile)
	}
	if len(from) > 1 {
		p.add(strings.Join(from, ", "), "one password is enough")
	}
	if name != "" && s.Username != "" {
		p.add("the URL in "+mention("store")+", "+mention("store-username"), "one user is enough")
	}
	switch {
	case len(from) > 0:
	case s.Username != "":
		p.flag("store-username", "needs a password: set %s or %s", passwordEnv, inFile)
	case name != "":
		p.flag("store", "the user in the URL needs a password: set %s or %s", passwordEnv, inFile)
	}
}
