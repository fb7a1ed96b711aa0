package config

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/soloist-dev/soloist/internal/lease"
)

// HelpError is no failure: help was asked for. Print Text to stdout and exit with ExitOK.
type HelpError struct{ Text string }

func (*HelpError) Error() string { return "help asked for" }

// width is how many columns help may take.
const width = 100

// overview is the help of the program.
func overview() string {
	var b strings.Builder
	b.WriteString("One replica plays. Soloist is a sidecar for leader election and job locks on Redis.\n\n" +
		"Usage:\n  sidecar [VERB] [FLAG]...\n\nVerbs:\n")
	for _, v := range verbs {
		fmt.Fprintf(&b, "  %-15s %s\n", v.name, v.summary)
	}
	b.WriteString("\n")
	fill(&b, "", "sidecar VERB --help lists the flags of a verb, their variables and their defaults. A flag wins over "+
		"its variable. A flag that may be repeated has a variable that holds its values with spaces between them.")
	writeExits(&b, []string{
		fmt.Sprintf("%d    done", ExitOK), exitFailed, exitUsage,
		"40, 41, 42   of run: not obtained, done before, lost", "42   elect --on-lost=exit: a term was lost", "130, 143   a second SIGINT or SIGTERM",
	})
	return b.String()
}

// help is the help of the verb.
func (r *reader) help() string {
	v, _ := findVerb(r.config.Verb)
	var b strings.Builder
	name := v.name
	if name == Elect {
		name = "[" + name + "]"
	}
	b.WriteString(strings.TrimSpace("Usage:\n  sidecar "+name+" [FLAG]... "+operands[name]) + "\n\n")
	fill(&b, "", v.text)
	group := ""
	flagsOf(v.name).VisitAll(func(f *pflag.Flag) { // not r.flags: those hold what was given
		if f.Name == "help" {
			return
		}
		if g := f.Annotations[groupKey][0]; g != group {
			group = g
			fmt.Fprintf(&b, "\n%-40s %-28s %s\n", group, "variable", "default")
		}
		writeFlag(&b, f)
	})
	writeEnvironment(&b, v.name)
	writeExits(&b, v.exits)
	if v.name == Elect {
		writeBudget(&b, r.config.Timing)
	}
	return b.String()
}

func writeFlag(b *strings.Builder, f *pflag.Flag) {
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	if meta := f.Annotations[metaKey][0]; meta != "" {
		name += " " + meta
	}
	shown := f.DefValue
	if a := f.Annotations[defaultKey]; a != nil {
		shown = a[0]
	}
	env := EnvName(f.Name)
	if env == "" {
		env = "-"
	}
	fmt.Fprintf(b, "  %-38s %-28s %s\n", name, env, shown)
	fill(b, "        ", f.Usage)
}

func writeEnvironment(b *strings.Builder, verb string) {
	lines := []struct{ name, text string }{
		{passwordEnv, "The store's password. It has no flag, because command lines are public."},
		{sentinelEnv, "The Sentinels' password, if they have one."},
	}
	switch verb {
	case Elect:
		lines = append(lines, []struct{ name, text string }{
			{"POD_NAME, POD_NAMESPACE", "This pod, from the downward API. It is annotated if all three are known."},
			{"POD_UID", "Also lets a restarted sidecar take back its predecessor's lease at once."},
			{"NODE_NAME", "Where the pod runs, for people."},
		}...)
	case Run:
		lines = append(lines, []struct{ name, text string }{
			{"SOLOIST_HELD", "For CMD: the lock that it runs under."},
			{"SOLOIST_FENCE", "For CMD: the fence, to go with what it writes."},
			{"SOLOIST_TOKEN", "For CMD: the token, a secret, with which it may renew and release."},
		}...)
	case Status, Locks, UnlockVerb:
	default:
		return
	}
	b.WriteString("\nOther variables\n")
	for _, l := range lines {
		fmt.Fprintf(b, "  %-24s %s\n", l.name, l.text)
	}
}

func writeExits(b *strings.Builder, exits []string) {
	b.WriteString("\nExit codes\n")
	for _, e := range exits {
		code, text, _ := strings.Cut(e, "  ")
		fmt.Fprintf(b, "  %-9s %s\n", code, strings.TrimSpace(text))
	}
}

// writeBudget says what the timings mean.
func writeBudget(b *strings.Builder, t lease.Timing) {
	fmt.Fprintf(b, "\nWith --lease-duration %s, --renew-deadline %s, --retry-period %s\n",
		brief(t.LeaseDuration), brief(t.RenewDeadline), brief(t.RetryPeriod))
	var p problems
	if validateTiming(&p, t); len(p) > 0 {
		for _, err := range p {
			fill(b, "  ", "refused: "+err.Error())
		}
		return
	}
	for _, l := range []struct{ what, value, text string }{
		{"belief lasts", brief(t.Belief()), "after the last confirmed renewal; then the answer is \"not leader\""},
		{"others take over", brief(t.LeaseDuration), "after it, not earlier"},
		{"the app can use", brief(t.LeaseDuration - t.RenewDeadline), "at least, between the two, to stop"},
	} {
		fmt.Fprintf(b, "  %-18s %-9s %s\n", l.what, l.value, l.text)
	}
}

// fill writes text in lines of at most width columns, if its words allow.
func fill(b *strings.Builder, indent, text string) {
	line := indent
	for word := range strings.FieldsSeq(text) {
		if line != indent && len(line)+1+len(word) > width {
			b.WriteString(line + "\n")
			line = indent
		}
		if line != indent {
			line += " "
		}
		line += word
	}
	b.WriteString(line + "\n")
}
