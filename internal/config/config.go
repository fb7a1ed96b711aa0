package config

import (
	"log/slog"
	"net"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
)

// Exit codes of every verb.
const (
	ExitOK     = 0   // done, or ended by the first SIGTERM or SIGINT; leader: leads
	ExitFailed = 1   // failed; leader: does not lead, or no answer
	ExitUsage  = 2   // the flags or variables can't be right
	ExitHeld   = 40  // run: the lock was not obtained, CMD did not run
	ExitDone   = 41  // run --once: it was done before, CMD did not run
	ExitLost   = 42  // elect with --on-lost=exit: a term was lost; run: the lock was, and CMD was ended
	ExitSignal = 128 // plus the signal's number, after a second signal
)

// Config is what one verb was told. Fields that the verb has no flags for keep their
// defaults. It is not changed after [Parse], so it may be read concurrently. Printing
// it shows no secret.
type Config struct {
	Verb      string     // one of the constants
	Elections []Election // --lock; at least one for elect and status, at most one for leader and resign
	Identity  Identity
	Timing    lease.Timing // --lease-duration, --renew-deadline, --retry-period
	Store     Store
	HTTP      HTTP
	Probe     Probe
	App       App
	Pod       Pod
	Log       Log
	Request   Request
	Jobs      Jobs
	Job       Job
	Unlock    Unlock
	Args      []string // CMD of run, DIR of install
	Output    string   // --output of status: table or json; of version: text or json
}

// Election is one lock to compete for.
type Election struct {
	Lock string // see [lease.CheckName]
	// Slots is how many may lead at once, each with a slot of its own. 0: a plain lock,
	// which is not the same as a lock of one slot, and can't be mixed with it.
	Slots int
}

// Identity says who competes. It is shown to people; Name, PodUID and the HTTP address
// together tell a restarted sidecar its own predecessor.
type Identity struct {
	Name      string // --name; default POD_NAME, else the hostname
	Pod       string // POD_NAME; "": the pod can't be annotated
	Namespace string // POD_NAMESPACE; "": the same
	PodUID    string // POD_UID; "": the same, and a predecessor's lease is waited for, never taken back
	Node      string // NODE_NAME; for people
}

// HTTP is the app's interface.
type HTTP struct {
	// Address is host:port. The host is loopback: whoever reaches it may resign and
	// unlock. Default localhost:4040. In leader and resign: where the sidecar listens.
	Address string
}

// Addresses returns what to listen on: one address, or for localhost both loopback
// addresses. (With port 0 the system gives each a port of its own.)
func (h HTTP) Addresses() []string {
	if host, port, err := net.SplitHostPort(h.Address); err == nil && host == localhost {
		return []string{net.JoinHostPort("127.0.0.1", port), net.JoinHostPort("::1", port)}
	}
	return []string{h.Address}
}

// Readiness says what /readyz means.
type Readiness string

const (
	ReadyStore  Readiness = "store"  // the store has answered; standbys are ready
	ReadyLeader Readiness = "leader" // this pod leads; a Deployment's rollout waits for it
)

// Probe is the kubelet's interface.
type Probe struct {
	// Address is host:port, by default :4041, which is all addresses: the kubelet does not
	// come from loopback. "": no probes and no metrics.
	Address   string
	Readiness Readiness // default ReadyStore
}

// OnLost says what follows a term that ended against the sidecar's will.
type OnLost string

const (
	LostNone OnLost = "none" // the app is told, and the sidecar competes again
	LostExit OnLost = "exit" // the sidecar exits with ExitLost, so that the pod's containers restart
)

// App says what is asked of the app.
type App struct {
	// HealthURL is asked every HealthPeriod (default 2s); an answer of 2xx within
	// HealthTimeout (default 1s, never above the period) is success. "": the app counts as
	// well. An app that is not well does not lead.
	HealthURL     string
	HealthPeriod  time.Duration
	HealthTimeout time.Duration
	// HealthFailures in a row make the app unhealthy, default 3; one success makes it well.
	HealthFailures int
	// Heartbeat is for how long POST /heartbeat may be silent before a term ends. 0, the
	// default: never mind. At least 1s, because shorter pauses happen to healthy programs.
	Heartbeat time.Duration
	// DrainTimeout is for how long after SIGTERM the lock is kept for an app that still
	// works. Default 0: SIGTERM reaches a native sidecar after its app has ended.
	DrainTimeout time.Duration
	OnLost       OnLost // default LostNone
}

// Annotate says whether the pod shows what its elections say.
type Annotate string

const (
	AnnotateAuto Annotate = "auto" // where there is an API server and the pod is known
	AnnotateOff  Annotate = "off"
)

// FastFailover says how the first in line learns of a leader's death.
type FastFailover string

const (
	FailoverOff FastFailover = "off" // the lease is waited for
	FailoverPod FastFailover = "pod" // from the API server: all containers of its pod have ended
)

// Pod says what to show on the pod, and what to learn from others.
type Pod struct {
	Annotate Annotate // default AnnotateAuto
	// FastFailover says whether a term may end with its pod's death, before its lease does.
	FastFailover FastFailover // default FailoverOff
	// TerminationMessage is where the container's termination message is written: which
	// terms this process has had. It is left alone if it does not exist.
	TerminationMessage string // default /dev/termination-log, as Kubernetes' terminationMessagePath
	// ReadinessGate: keep the pod's condition soloist.dev/leader, which its readiness gate
	// names.
	ReadinessGate bool
}

// LogFormat is how log lines look.
type LogFormat string

const (
	LogJSON LogFormat = "json"
	LogText LogFormat = "text"
)

// Log says what is logged, and how.
type Log struct {
	Level  string    // debug, info, warn or error; default info
	Format LogFormat // default LogJSON
}

// Slog returns the level for slog; info if it is none.
func (l Log) Slog() slog.Level {
	var level slog.Level
	_ = level.UnmarshalText([]byte(l.Level)) // Validate has judged it
	return level
}

// Request is what the verbs ask that ask.
type Request struct {
	Timeout time.Duration // for the whole verb; default 1s for leader, 30s for wait, 1m for check-injection, else 5s
	// Done says that the app has finished: hand over now, not when the last validity
	// handed out has run out.
	Done bool
	// HoldOff is for how long the sidecar stays out of the race. nil, the default: until
	// another has led, at most a lease duration.
	HoldOff *time.Duration
	Fence   uint64 // of the term to end, so that a late retry ends no later one. 0: any
}

// Jobs is about the locks that the app asks for.
type Jobs struct {
	Max  int    // locks at a time, default 1000. 0: none
	Only bool   // there is no election
	Dapr string // host:port of loopback for Dapr's clients; "": none
}

// Job is what run does under a lock.
type Job struct {
	Via     string // a sidecar's URL; "": straight on the store
	Lease   time.Duration
	Wait    time.Duration
	AtLeast time.Duration
	AtMost  time.Duration // 0: no limit
	Once    string
	Keep    time.Duration // default 7 days, if Once is set
	SkipOK  bool          // exit with 0 where CMD did not run because another runs it or has
}

// Unlock is what unlock does.
type Unlock struct {
	Force bool // delete at once
	Yes   bool
}

// Default returns what verb does without flags and variables. Where a flag is required
// it is not valid.
func Default(verb string) *Config {
	c := &Config{
		Verb:   verb,
		Timing: lease.DefaultTiming,
		Store: Store{
			KeyPrefix:      defaultPrefix,
			Check:          CheckStrict,
			DelayedRestart: DelayAuto,
		},
		HTTP:  HTTP{Address: "localhost:4040"},
		Probe: Probe{Address: ":4041", Readiness: ReadyStore},
		App: App{
			HealthPeriod:   2 * time.Second,
			HealthTimeout:  time.Second,
			HealthFailures: 3,
			OnLost:         LostNone,
		},
		Pod: Pod{
			Annotate: AnnotateAuto, FastFailover: FailoverOff, TerminationMessage: "/dev/termination-log",
		},
		Jobs:    Jobs{Max: 1000},
		Job:     Job{Lease: 30 * time.Second},
		Log:     Log{Level: "info", Format: LogJSON},
		Request: Request{Timeout: 5 * time.Second},
	}
	switch verb {
	case Leader:
		c.Request.Timeout = time.Second // a probe's own default
	case Wait:
		c.Request.Timeout = 30 * time.Second
	case Check:
		c.Request.Timeout = time.Minute
	case Run: // its messages are for people, and CMD's output is not to drown in them
		c.Log = Log{Level: "warn", Format: LogText}
	case Status, Locks:
		c.Output = "table"
	case Version:
		c.Output = "text"
	}
	return c
}
