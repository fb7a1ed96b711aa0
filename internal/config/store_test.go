package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestStoreMessages(t *testing.T) {
	const (
		store   = `--store (SOLOIST_STORE): `
		prefix  = `--key-prefix (SOLOIST_KEY_PREFIX): `
		escape  = store + `is not a valid URL; in a password, characters other than letters, digits and -._~ must be escaped as %XX`
		inFile  = `--store-password-file (SOLOIST_STORE_PASSWORD_FILE)`
		both    = store + `path must be empty or the number of a database: redis://HOST:6379/0`
		option  = store + `may hold no option but ?db=N; in a password, ? must be escaped as %3F`
		socket  = store + `must hold the absolute path of a socket: unix:///PATH, or unix://USER:PASSWORD@/PATH`
		noUser  = store + `the user in the URL needs a password: set SOLOIST_STORE_PASSWORD or ` + inFile
		visible = store + `a password on the command line is there for all to see: leave it out, and set SOLOIST_STORE_PASSWORD or --store-password-file, or put the URL into SOLOIST_STORE`
	)
	tests := []struct {
		url  string // in SOLOIST_STORE
		args string
		env  string
		want string // "": valid
	}{
		{"redis://r", "", "", ""},
		{"REDISS://u:hunter2@[::1]:6380/15", "", "", ""},
		{"redis://:hunter2@r?db=3", "", "", ""},
		{"unix:///run/redis.sock?db=2", "", "", ""},
		{"unix://u:hunter2@/run/redis.sock", "", "", ""},
		{"redis://:hunter2@other", "--store=redis://r", "", ""},
		{"redis://r", "", "SOLOIST_STORE_PASSWORD=\n hunter2\n", ""},

		{"", "", "", store + `must say where the locks are kept, such as redis://HOST:6379; in a cluster it is kubernetes:// by itself`},
		{"redis://a redis://b redis://c", "", "", store + `several URLs, 3 here, are not supported by this version`},
		{"redis+sentinel://u:hunter2@a,b:26380,[::1]:26379/main?db=2", "", "SOLOIST_SENTINEL_PASSWORD=hunter2", ""},
		{"rediss+sentinel://a/main", "--tls-ca-file=/ca", "", ""},
		{"redis+cluster://a,b:6380", "", "SOLOIST_STORE_PASSWORD=hunter2", ""},
		{"redis+sentinel://a,b", "", "", store + `must name the master that the Sentinels watch: redis+sentinel://HOST:26379,HOST:26379/NAME`},
		{"redis+sentinel://a,,b/main", "", "", store + `has no host`},
		{"redis+sentinel://a,b:0/main", "", "", store + `port must be 1 to 65535`},
		{"redis+sentinel://hunter2@a,b/main", "", "", noUser},
		{"redis+cluster://a,b/1", "", "", store + `may hold nothing behind the hosts: a cluster has one database`},
		{"redis+cluster://a?db=1", "", "", store + `may hold nothing behind the hosts: a cluster has one database`},
		{"redis://a,b", "", "", store + `has several hosts: use redis+sentinel:// or redis+cluster://, or give --store several times for a quorum`},
		{"redis://a", "", "SOLOIST_SENTINEL_PASSWORD=hunter2", `SOLOIST_SENTINEL_PASSWORD: goes with redis+sentinel://`},
		{"kubernetes://", "", "POD_NAMESPACE=shop", ""},
		{"kubernetes://shop", "", "", ""},
		{"kubernetes://", "", "", store + `kubernetes:// does not know its namespace: set POD_NAMESPACE, or name it: kubernetes://NAMESPACE`},
		{"kubernetes://shop", "--key-prefix=x", "", prefix + `has no meaning with kubernetes://, where a lock is the Lease of its name: remove it`},
		{"kubernetes://Shop", "", "", store + `must be kubernetes:// alone, or with a namespace and nothing else: kubernetes://NAMESPACE`},
		{"kubernetes://u:p@shop", "", "", store + `must be kubernetes:// alone, or with a namespace and nothing else: kubernetes://NAMESPACE`},
		{"kubernetes://shop/x", "", "", store + `must be kubernetes:// alone, or with a namespace and nothing else: kubernetes://NAMESPACE`},
		{"http://hunter2", "", "", store + `scheme must be redis, rediss (TLS), redis+sentinel, redis+cluster, unix or kubernetes`},
		{"hunter2@r:6379", "", "", store + `must be a URL, such as redis://HOST:6379`},
		{"redis://:6379", "", "", store + `has no host`},
		{"redis://$(REDIS_HOST):6379", "", "", store + `holds a $(VARIABLE) that nothing has replaced: Kubernetes replaces those that are declared before it in the same container`},
		{"redis://r:0", "", "", store + `port must be 1 to 65535`},
		{"redis://r:65536", "", "", store + `port must be 1 to 65535`},
		{"redis://r/0/hunter2", "", "", both},
		{"redis://r/-1", "", "", both},
		{"redis://u:12/hunter2@r", "", "", both}, // an unescaped / in the password
		{"redis://:hunt/er2@r", "", "", escape},
		{"redis://:12?hunter2@r", "", "", store + `has no host`},
		{"redis://u:12#hunter2@r", "", "", store + `has a part after #; in a password, # must be escaped as %23`},
		{"redis://r?skip_verify=hunter2", "", "", option},
		{"redis://r?db=x", "", "", option},
		{"unix://run/redis.sock", "", "", socket},
		{"unix:///", "", "", socket},

		{"redis://r", "--store=redis://u:hunter2@r", "", visible},
		{"redis://hunter2@r", "", "", noUser}, // as redis-cli writes a password
		{"redis://r", "--store-username=u", "", `--store-username (SOLOIST_STORE_USERNAME): needs a password: set SOLOIST_STORE_PASSWORD or ` + inFile},
		{"redis://:hunter2@r", "", "SOLOIST_STORE_PASSWORD=hunter2", `the URL in --store (SOLOIST_STORE), SOLOIST_STORE_PASSWORD: one password is enough`},
		{"redis://r", "--store-password-file=/p", "SOLOIST_STORE_PASSWORD=hunter2", `SOLOIST_STORE_PASSWORD, ` + inFile + `: one password is enough`},
		{"redis://u:hunter2@r", "--store-username=v", "", `the URL in --store (SOLOIST_STORE), --store-username (SOLOIST_STORE_USERNAME): one user is enough`},

		{"redis://r", "--tls-ca-file=/ca --tls-server-name=r", "", `--tls-ca-file (SOLOIST_TLS_CA_FILE), --tls-server-name (SOLOIST_TLS_SERVER_NAME): needs a rediss:// URL in --store (SOLOIST_STORE)`},
		{"rediss://r", "--tls-cert-file=/c", "", `--tls-cert-file (SOLOIST_TLS_CERT_FILE), --tls-key-file (SOLOIST_TLS_KEY_FILE): one needs the other`},
		{"redis://r", "--key-prefix=a{b", "", `--key-prefix (SOLOIST_KEY_PREFIX): must be 1 to 100 bytes without white space and braces, is "a{b"`},
		{"redis://r", "--key-prefix=", "", `--key-prefix (SOLOIST_KEY_PREFIX): must be 1 to 100 bytes without white space and braces, is ""`},
	}
	for _, tt := range tests {
		t.Run(tt.url+" "+tt.args, func(t *testing.T) {
			env := append([]string{"SOLOIST_STORE=" + tt.url, tt.env}, least...)
			c, _, err := Parse(Elect, strings.Fields(tt.args), env)
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows the password: %v", err)
			}
			if tt.want != "" {
				wantLines(t, err, tt.want)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			noSecret(t, c)
		})
	}
}

// noSecret fails if any way to print v shows hunter2.
func noSecret(t *testing.T, v any) {
	t.Helper()
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", slog.Any("v", v))
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", slog.Any("v", v))
	encoded, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	prints := []string{log.String(), string(encoded)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		prints = append(prints, fmt.Sprintf(verb, v), fmt.Sprintf(verb, []any{struct{ hidden any }{v}}))
	}
	for _, p := range prints {
		if strings.Contains(p, "hunter2") || strings.Contains(p, fmt.Sprintf("%x", "hunter2")) {
			t.Errorf("the password shows in: %s", p)
		}
	}
}

func TestSecretsDoNotPrint(t *testing.T) {
	noSecret(t, NewSecret("hunter2"))
	noSecret(t, struct{ hidden Secret }{NewSecret("hunter2")})
	noSecret(t, struct{ hidden StoreURL }{NewStoreURL("redis://:hunter2@r")})
	if s := NewSecret("hunter2"); s.Reveal() != "hunter2" || fmt.Sprint(s) != "REDACTED" || s.IsZero() {
		t.Errorf("%q %v", s.Reveal(), s)
	}
	if s := NewSecret(""); s.Reveal() != "" || fmt.Sprint(s) != "" || !s.IsZero() {
		t.Errorf("%q %v", s.Reveal(), s)
	}
	for raw, want := range map[string]string{
		"redis://r:6379/0":                "redis://r:6379/0",
		"rediss://u:hunter2@r?db=1":       "rediss://REDACTED@r?db=1",
		"redis://hunter2@r":               "redis://REDACTED@r",
		"redis://:hunter2@r:port":         "REDACTED",
		"redis://u:12/hunter2@r":          "REDACTED",
		"redis://r?password=hunter2":      "REDACTED",
		"unix:///run/hunter2@r":           "REDACTED",
		"redis+cluster://u:hunter2@a,b/0": "REDACTED",
		"hunter2":                         "REDACTED",
	} {
		u := NewStoreURL(raw)
		noSecret(t, u)
		if got := u.String(); got != want || u.Reveal() != raw {
			t.Errorf("%s prints as %s, want %s", raw, got, want)
		}
	}
}

func TestPasswordOfTheEnvironment(t *testing.T) {
	env := append([]string{"SOLOIST_STORE_PASSWORD=\t hunter2\n"}, least...)
	c := mustParse(t, Elect, []string{"--store-username=u"}, env)
	if got := c.Store.Password.Reveal(); got != "hunter2" {
		t.Errorf("password %q", got)
	}
	c = mustParse(t, Leader, nil, env)
	if !c.Store.Password.IsZero() {
		t.Error("leader reads the password")
	}
}

// In a cluster the locks are in Lease objects unless something else is said.
func TestKubernetesStore(t *testing.T) {
	inCluster := []string{"KUBERNETES_SERVICE_HOST=10.96.0.1", "POD_NAME=a", "POD_NAMESPACE=shop"}
	for args, want := range map[string]string{
		"--lock=city-ids": "kubernetes://",
		"--lock=city-ids --store=kubernetes://shop":      "kubernetes://shop",
		"--lock=city-ids --store=redis://h":              "redis://h",
		"--lock=a.b-c":                                   "kubernetes://",
		"--lock=a/b":                                     "a/b can't be the name of a Lease",
		"--lock=a_b":                                     "a_b can't be the name of a Lease",
		"--lock=a=3":                                     "a has slots",
		"--lock=a --store-username=u":                    "takes no user and no password",
		"--lock=a --tls-ca-file=/x":                      "needs a rediss:// URL",
		"--lock=a --store=kubernetes://h --store=redis:": "several URLs",
	} {
		c, _, err := Parse(Elect, strings.Fields(args), inCluster)
		got := fmt.Sprint(err)
		if err == nil {
			got = c.Store.URLs[0].String()
		}
		taken := strings.HasPrefix(want, "kubernetes://") || strings.HasPrefix(want, "redis://")
		if taken != (err == nil) || !strings.Contains(got, want) {
			t.Errorf("%s: %s; want %s", args, got, want)
		}
	}
}
