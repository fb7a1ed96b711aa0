package config

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestMessages has one bad configuration for each message. What is not given is in least.
func TestMessages(t *testing.T) {
	long := strings.Repeat("a", 201)
	tests := []struct {
		verb string
		args string // separated by spaces; ~ is a space
		env  string // before least; separated by |
		want string
	}{
		// What can't be parsed.
		{Elect, "--lease-duration=15", "", `--lease-duration (SOLOIST_LEASE_DURATION): must be a duration such as 500ms, 15s or 1m30s, is "15"`},
		{Elect, "", "SOLOIST_RETRY_PERIOD=", `--retry-period (SOLOIST_RETRY_PERIOD): must be a duration such as 500ms, 15s or 1m30s, is ""`},
		{Elect, "--slots=x", "", `--slots (SOLOIST_SLOTS): must be a whole number, is "x"`},
		{Elect, "", "SOLOIST_APP_HEALTH_FAILURES=1.5", `--app-health-failures (SOLOIST_APP_HEALTH_FAILURES): must be a whole number, is "1.5"`},
		{Elect, "--lock=a=x", "", `--lock (SOLOIST_LOCK): "a=x" must be NAME or NAME=SLOTS with a whole number`},
		{Elect, "--lock", "", `--lock (SOLOIST_LOCK): needs a value`},
		{Elect, "--lease-duraton=5s", "", `unknown flag "--lease-duraton"; did you mean --lease-duration?`},
		{Elect, "--bogus value", "", `unknown flag "--bogus"`},
		{Elect, "-lock=a", "", `unknown flag "-lock"; did you mean --lock?`},
		{Elect, "--=a", "", `unknown flag "--"`},
		{Elect, "--redis://:hunter2@r", "", `unknown flag "REDACTED"`},
		{Elect, "leader", "", `unexpected argument "leader"`},
		{Elect, "redis://:hunter2@r", "", `unexpected argument "REDACTED"`},
		{Elect, "--lock=redis://:hunter2@r", "", `--lock (SOLOIST_LOCK): name must be 1 to 200 of a-z 0-9 - . _ / and begin and end with a letter or digit, is "REDACTED"`},
		{Elect, "--retry-period redis://:hunter2@r", "", `--retry-period (SOLOIST_RETRY_PERIOD): must be a duration such as 500ms, 15s or 1m30s, is "REDACTED"`},
		{Resign, "--done=x", "", `--done: must be true or false, is "x"`},
		{Resign, "--fence=0", "", `--fence: must be a whole number above 0, is "0"`},
		{Resign, "", "SOLOIST_HOLD_OFF=x", `--hold-off (SOLOIST_HOLD_OFF): must be a duration such as 500ms, 15s or 1m30s, is "x"`},
		// Elections.
		{Elect, "", "SOLOIST_LOCK=", `--lock (SOLOIST_LOCK): must name at least one lock to compete for`},
		{Status, "", "SOLOIST_LOCK=", `--lock (SOLOIST_LOCK): must name at least one lock to show`},
		{Leader, "--lock=a --lock=b", "", `--lock (SOLOIST_LOCK): must name one lock, names 2`},
		{Resign, "", "SOLOIST_LOCK=a b=2 c", `--lock (SOLOIST_LOCK): must name one lock, names 3`},
		{Elect, "--lock=A", "", `--lock (SOLOIST_LOCK): name must be 1 to 200 of a-z 0-9 - . _ / and begin and end with a letter or digit, is "A"`},
		{Elect, "--lock=" + long, "", `--lock (SOLOIST_LOCK): name must be 1 to 200 of a-z 0-9 - . _ / and begin and end with a letter or digit, is "` + long + `"`},
		{Elect, "--lock=a --lock=a=2", "", `--lock (SOLOIST_LOCK): a is given twice`},
		{Elect, "--lock=a=-1", "", `--lock (SOLOIST_LOCK), --slots (SOLOIST_SLOTS): slots of "a" must be 0 (a plain lock) to 1000, is -1`},
		{Elect, "--slots=1001", "", `--lock (SOLOIST_LOCK), --slots (SOLOIST_SLOTS): slots of "city-ids" must be 0 (a plain lock) to 1000, is 1001`},
		// Identity.
		{Elect, "--name=a~b", "", `--name (SOLOIST_NAME, else POD_NAME, else the hostname): must be 1 to 253 bytes without white space, and not -, is "a b"`},
		{Elect, "--name=", "", `--name (SOLOIST_NAME, else POD_NAME, else the hostname): must be 1 to 253 bytes without white space, and not -, is ""`},
		{Elect, "", "POD_NAMESPACE=a b", `POD_NAMESPACE: must be at most 253 bytes without white space, and not -, is "a b"`},
		{Elect, "", "POD_UID=-", `POD_UID: must be at most 253 bytes without white space, and not -, is "-"`},
		{Elect, "", "NODE_NAME=a\x00", `NODE_NAME: must be at most 253 bytes without white space, and not -, is "a\x00"`},
		// Timing.
		{Elect, "--retry-period=0", "", `--retry-period (SOLOIST_RETRY_PERIOD) must be at least 1ms, is 0s`},
		{Elect, "--renew-deadline=15s", "", `--renew-deadline (SOLOIST_RENEW_DEADLINE) × 1.02 + 10ms must be ≤ --lease-duration (SOLOIST_LEASE_DURATION): 15s × 1.02 + 10ms = 15.31s > 15s`},
		{Elect, "--retry-period=6s", "", `--retry-period (SOLOIST_RETRY_PERIOD) × 2 must be ≤ --renew-deadline (SOLOIST_RENEW_DEADLINE): 6s × 2 > 10s`},
		{Elect, "--lease-duration=2000000h", "", `--lease-duration (SOLOIST_LEASE_DURATION): must be at most 24h, is 2000000h`},
		{Elect, "--renew-deadline=-2000000h", "", `--renew-deadline (SOLOIST_RENEW_DEADLINE): must be at most 24h, is -2000000h`},
		{Elect, "--fast-failover=node", "", `--fast-failover (SOLOIST_FAST_FAILOVER): must be off or pod, is "node"`},
		{Elect, "--fast-failover=pod --termination-message-path=", "", `--fast-failover (SOLOIST_FAST_FAILOVER): pod needs --termination-message-path (SOLOIST_TERMINATION_MESSAGE_PATH): without, no death can be proven`},
		{Elect, "--annotate=yes", "", `--annotate (SOLOIST_ANNOTATE): must be auto or off, is "yes"`},
		{Elect, "--annotate=off --readiness-gate", "", `--readiness-gate (SOLOIST_READINESS_GATE): needs --annotate (SOLOIST_ANNOTATE) auto: without, nothing is written to the pod`},
		{Elect, "--on-lost=exit --lease-duration=13900ms", "", `--on-lost (SOLOIST_ON_LOST): exit needs --lease-duration (SOLOIST_LEASE_DURATION) - --renew-deadline (SOLOIST_RENEW_DEADLINE) ≥ 4s, is 3.9s: a restart of all containers takes up to about 3.1s to stop the app, and others take over meanwhile`},
		// Addresses.
		{Elect, "--http-address=:4040", "", `--http-address (SOLOIST_HTTP_ADDRESS): host must be localhost or a loopback address: who reaches it may resign and unlock, is ":4040"`},
		{Elect, "--http-address=10.0.0.1:1", "", `--http-address (SOLOIST_HTTP_ADDRESS): host must be localhost or a loopback address: who reaches it may resign and unlock, is "10.0.0.1:1"`},
		{Leader, "--http-address=localhost", "", `--http-address (SOLOIST_HTTP_ADDRESS): must be HOST:PORT, is "localhost"`},
		{Elect, "--http-address=localhost:web", "", `--http-address (SOLOIST_HTTP_ADDRESS): port must be a number from 0 to 65535, is "localhost:web"`},
		{Resign, "--http-address=localhost:0", "", `--http-address (SOLOIST_HTTP_ADDRESS): port must be a number from 1 to 65535, is "localhost:0"`},
		{Elect, "--probe-address=4041", "", `--probe-address (SOLOIST_PROBE_ADDRESS): must be HOST:PORT, is "4041"`},
		{Elect, "--probe-address=:65536", "", `--probe-address (SOLOIST_PROBE_ADDRESS): port must be a number from 0 to 65535, is ":65536"`},
		{Elect, "--probe-address=host:1", "", `--probe-address (SOLOIST_PROBE_ADDRESS): host must be empty, localhost or an IP address, is "host:1"`},
		{Elect, "--probe-address=0.0.0.0:4040", "", `--probe-address (SOLOIST_PROBE_ADDRESS): must have another port than --http-address (SOLOIST_HTTP_ADDRESS), is "0.0.0.0:4040"`},
		// Words.
		{Elect, "--readiness=", "", `--readiness (SOLOIST_READINESS): must be store or leader, is ""`},
		{Elect, "--on-lost=restart", "", `--on-lost (SOLOIST_ON_LOST): must be none or exit, is "restart"`},
		{Elect, "--store-check=off", "", `--store-check (SOLOIST_STORE_CHECK): must be strict or warn, is "off"`},
		{Elect, "--delayed-restart=true", "", `--delayed-restart (SOLOIST_DELAYED_RESTART): must be auto, on or off, is "true"`},
		{Elect, "--log-level=INFO", "", `--log-level (SOLOIST_LOG_LEVEL): must be debug, info, warn or error, is "INFO"`},
		{Elect, "--log-format=logfmt", "", `--log-format (SOLOIST_LOG_FORMAT): must be json or text, is "logfmt"`},
		{Status, "-otext", "", `--output (SOLOIST_OUTPUT): must be table or json, is "text"`},
		{Version, "-o=yaml", "", `--output (SOLOIST_OUTPUT): must be text or json, is "yaml"`},
		// The app.
		{Elect, "--app-health-url=localhost:80/h", "", `--app-health-url (SOLOIST_APP_HEALTH_URL): must be a URL such as http://localhost:8080/healthz`},
		{Elect, "--app-health-url=http://u:hunter2@r", "", `--app-health-url (SOLOIST_APP_HEALTH_URL): must not hold a user or password`},
		{Elect, "--app-health-timeout=3s", "", `--app-health-timeout (SOLOIST_APP_HEALTH_TIMEOUT): must be ≤ --app-health-period (SOLOIST_APP_HEALTH_PERIOD): 3s > 2s`},
		{Elect, "--app-health-timeout=0", "", `--app-health-timeout (SOLOIST_APP_HEALTH_TIMEOUT): must be 1ms to 24h, is 0s`},
		{Elect, "--app-health-period=25h", "", `--app-health-period (SOLOIST_APP_HEALTH_PERIOD): must be 100ms to 24h, is 25h`},
		{Elect, "--app-health-failures=0", "", `--app-health-failures (SOLOIST_APP_HEALTH_FAILURES): must be at least 1, is 0`},
		{Elect, "--require-heartbeat=999ms", "", `--require-heartbeat (SOLOIST_REQUIRE_HEARTBEAT): must be 0 (off) or 1s to 24h, is 999ms`},
		{Elect, "--drain-timeout=-1s", "", `--drain-timeout (SOLOIST_DRAIN_TIMEOUT): must be 0s to 24h, is -1s`},
		{Status, "--timeout=0", "", `--timeout (SOLOIST_TIMEOUT): must be 1ms to 24h, is 0s`},
		{Resign, "--hold-off=-1s", "", `--hold-off (SOLOIST_HOLD_OFF): must be 0s to 24h, is -1s`},
	}
	for _, tt := range tests {
		t.Run(tt.verb+" "+tt.args+tt.env, func(t *testing.T) {
			args := strings.Fields(tt.args)
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "~", " ")
			}
			_, _, err := Parse(tt.verb, args, append(strings.Split(tt.env, "|"), least...))
			wantLines(t, err, tt.want)
		})
	}
}

func wantLines(t *testing.T, err error, want ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want:\n%s", strings.Join(want, "\n"))
	}
	if got := strings.Split(err.Error(), "\n"); !slices.Equal(got, want) {
		t.Errorf("got:\n%v\nwant:\n%s", err, strings.Join(want, "\n"))
	}
}

func TestAllProblemsAtOnce(t *testing.T) {
	args := strings.Fields("--lock --bogus=1 x --lease-duration=never --unknown y --slots=-2 -z --log-level=loud --tls-key-file=/k --retry-period")
	args[1] = "Job A"
	_, _, err := Parse(Elect, args, []string{"SOLOIST_STORE=redis://:hunter2@r:port", "SOLOIST_READINESS=never", "SOLOIST_NAME=n"})
	wantLines(t, err,
		`unknown flag "--unknown"`,
		`unknown flag "-z"`,
		`--retry-period (SOLOIST_RETRY_PERIOD): needs a value`,
		`--lease-duration (SOLOIST_LEASE_DURATION): must be a duration such as 500ms, 15s or 1m30s, is "never"`,
		`--store (SOLOIST_STORE): is not a valid URL; in a password, characters other than letters, digits and -._~ must be escaped as %XX`,
		`--tls-key-file (SOLOIST_TLS_KEY_FILE): needs a rediss:// URL in --store (SOLOIST_STORE)`,
		`--tls-cert-file (SOLOIST_TLS_CERT_FILE), --tls-key-file (SOLOIST_TLS_KEY_FILE): one needs the other`,
		`--readiness (SOLOIST_READINESS): must be store or leader, is "never"`,
		`--log-level (SOLOIST_LOG_LEVEL): must be debug, info, warn or error, is "loud"`,
		`--lock (SOLOIST_LOCK): name must be 1 to 200 of a-z 0-9 - . _ / and begin and end with a letter or digit, is "Job A"`,
		`--lock (SOLOIST_LOCK), --slots (SOLOIST_SLOTS): slots of "Job A" must be 0 (a plain lock) to 1000, is -2`,
	)
}

func TestBounds(t *testing.T) {
	// Each is the last that is allowed.
	for _, args := range []string{
		"--on-lost=exit --lease-duration=14s",
		"--renew-deadline=14696078431ns",
		"--retry-period=5s",
		"--require-heartbeat=1s", "--require-heartbeat=0", "--require-heartbeat=24h",
		"--app-health-period=100ms --app-health-timeout=100ms",
		"--lock=a=1000", "--lock=a=0", "--lock=0", "--lock=" + strings.Repeat("a", 200),
		"--name=" + strings.Repeat("a", 253),
		"--key-prefix=" + strings.Repeat("a", 100),
		"--http-address=localhost:0 --probe-address=:0",
		"--http-address=127.1.2.3:4040 --probe-address=10.0.0.1:4040",
		"--store=redis://user@r", // with the password of the environment
	} {
		if _, _, err := Parse(Elect, strings.Fields(args), append([]string{"SOLOIST_STORE_PASSWORD=x"}, least...)); err != nil {
			t.Errorf("%.80s: %v", args, err)
		}
	}
}

func TestValidateIsPure(t *testing.T) {
	c := mustParse(t, Elect, nil, least)
	c.Verb = "elekt"
	if err := c.Validate(); err == nil {
		t.Error("an unknown verb passes")
	}
	c.Verb = Elect
	c.Timing.LeaseDuration = time.Second
	for range 2 {
		wantLines(t, c.Validate(), `--renew-deadline (SOLOIST_RENEW_DEADLINE) × 1.02 + 10ms must be ≤ `+
			`--lease-duration (SOLOIST_LEASE_DURATION): 10s × 1.02 + 10ms = 10.21s > 1s`)
	}
}
