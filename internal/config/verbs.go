package config

import (
	"fmt"
	"slices"
	"strings"
)

// The verbs.
const (
	Elect      = "elect"
	Leader     = "leader"
	Status     = "status"
	Resign     = "resign"
	Wait       = "wait"
	Drain      = "drain"
	Check      = "check-injection"
	Run        = "run"
	Locks      = "locks"
	UnlockVerb = "unlock"
	Install    = "install"
	Version    = "version"
)

// verb is what help says about one.
type verb struct {
	name    string
	summary string // for the list of verbs
	text    string // for its own help
	exits   []string
}

const (
	exitUsage  = "2    a flag or variable can't be right"
	exitFailed = "1    failed"
)

var verbs = []verb{
	{
		Elect, "compete for locks and tell the app who leads (the default verb)",
		"Competes for each --lock on the store, and tells the app over HTTP on loopback whether this pod leads. " +
			"Runs until SIGTERM or SIGINT, then gives up what it holds.",
		[]string{
			"0    ended by a signal, and gave up what it held", exitFailed, exitUsage,
			"42   --on-lost=exit: a term was lost",
			"130, 143   a second SIGINT or SIGTERM: gave up nothing",
		},
	},
	{
		Leader, "exit 0 if this pod leads now, 1 if not (for exec probes)",
		"Asks the sidecar of this pod whether it leads.",
		[]string{"0    leads now", "1    does not lead, or the sidecar did not answer in time", exitUsage},
	},
	{
		Status, "show who holds the locks, straight from the store",
		"Asks the store who holds each --lock, since when and until when, and how many wait. Changes nothing.",
		[]string{"0    the store has answered", exitFailed, exitUsage},
	},
	{
		Resign, "give up the lead of this pod",
		"Asks the sidecar of this pod to hand over. Without --done it stops saying that it leads at once, " +
			"and another may lead when the last validity handed out has run out.",
		[]string{"0    resigned", "1    does not lead, or the sidecar did not answer in time", exitUsage},
	},
	{
		Wait, "wait until the sidecar of this pod answers (for postStart)",
		"Asks the sidecar of this pod until it answers, whoever leads. As a native sidecar's postStart hook it holds " +
			"the app back until it can ask.",
		[]string{"0    it answers", "1    it did not answer in time", exitUsage},
	},
	{
		Drain, "say that this pod is about to end (for preStop)",
		"Tells the sidecar of this pod, and returns at once: if it leads it goes on until SIGTERM, so that the app may " +
			"finish; if not it campaigns no more.",
		[]string{"0    told", "1    the sidecar did not answer in time", exitUsage},
	},
	{
		Check, "wait until pods get their sidecar (for the chart)",
		"Creates a pod that asks for the sidecar in POD_NAMESPACE, as a dry run, until it comes back with one. The " +
			"chart's installation waits for it, because the API server takes a moment to obey a new policy or webhook.",
		[]string{"0    pods get their sidecar", "1    they did not in time", exitUsage},
	},
	{
		Run, "run a command while holding a lock",
		"Acquires --lock, runs CMD with SOLOIST_HELD, SOLOIST_FENCE and SOLOIST_TOKEN in its environment, and releases the " +
			"lock when CMD has ended. Signals are passed on to CMD's process group. If the lock is lost the group gets SIGTERM " +
			"at once, and SIGKILL before the lease can end.",
		[]string{
			"CMD's    CMD has ended; 128 + its number for a signal", "1    CMD could not be run, or no answer from the store", exitUsage,
			"40   the lock was not obtained in time: CMD did not run", "41   --once: it was done before: CMD did not run",
			"42   the lock was lost: CMD was ended, or ended too late", "126, 127   CMD can't be executed, or was not found",
		},
	},
	{
		Locks, "list the locks in the store, and who holds them",
		"Lists every lock that the store remembers, with its holders. It looks at every key of the database.",
		[]string{"0    listed", exitFailed, exitUsage},
	},
	{
		UnlockVerb, "end what is held of a lock, whatever its holder says",
		"Revokes each --lock: its holder is told at its next renewal that it has lost, and others may have it when its lease " +
			"has run out. With --force they may have it at once, while the holder may still be at work: only the fence then " +
			"keeps them apart.",
		[]string{"0    revoked, or nobody held it", exitFailed, exitUsage},
	},
	{
		Install, "copy this program into a directory",
		"Copies this program to DIR/sidecar, so that an init container can hand it to containers without it.",
		[]string{"0    copied", exitFailed, exitUsage},
	},
	{
		Version, "print the version",
		"Prints the version of this program.",
		[]string{"0    printed", exitUsage},
	},
}

// operands are what follows a verb's flags, if anything does.
var operands = map[string]string{Run: "-- CMD [ARG]...", Install: "DIR"}

func findVerb(name string) (verb, bool) {
	i := slices.IndexFunc(verbs, func(v verb) bool { return v.name == name })
	if i < 0 {
		return verb{}, false
	}
	return verbs[i], true
}

// Verb takes the verb from a program's arguments (without its name) and returns it with
// the rest. Without a verb it is elect. Its error is a *[HelpError] if help is asked for.
func Verb(args []string) (string, []string, error) {
	if len(args) == 0 {
		return Elect, nil, nil
	}
	first, rest := args[0], args[1:]
	switch {
	case first == "--version":
		return Version, rest, nil
	case first == "-h" || first == "--help" || first == "help" && len(rest) == 0:
		return "", nil, &HelpError{Text: overview()}
	case strings.HasPrefix(first, "-"):
		return Elect, args, nil
	case first == "help":
		first, rest = rest[0], []string{"--help"}
	}
	if _, ok := findVerb(first); !ok {
		return "", nil, unknownVerb(first)
	}
	return first, rest, nil
}

func unknownVerb(name string) error {
	var known []string
	for _, v := range verbs {
		known = append(known, v.name)
	}
	return fmt.Errorf("unknown verb %q: must be %s", name, oneOf(known))
}

// oneOf lists words for people: a, b or c.
func oneOf[T ~string](words []T) string {
	var b strings.Builder
	for i, w := range words {
		switch {
		case i == 0:
		case i == len(words)-1:
			b.WriteString(" or ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(string(w))
	}
	return b.String()
}
