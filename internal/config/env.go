package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

const (
	envPrefix   = "SOLOIST_"
	passwordEnv = "SOLOIST_STORE_PASSWORD"
	sentinelEnv = "SOLOIST_SENTINEL_PASSWORD"
)

// EnvName returns the variable of a flag, "" if it has none.
func EnvName(flag string) string {
	if slices.Contains(noVariable, flag) {
		return ""
	}
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// mention names a flag and its variable for people.
func mention(flag string) string {
	if env := EnvName(flag); env != "" {
		return "--" + flag + " (" + env + ")"
	}
	return "--" + flag
}

// given are the variables that tell apps and children of the sidecar something.
var given = []string{"SOLOIST_URL", "SOLOIST_HELD", "SOLOIST_FENCE", "SOLOIST_TOKEN", "SOLOIST_SLOT"}

// serviceVariable matches what Kubernetes makes of a Service soloist or soloist-NAME.
var serviceVariable = regexp.MustCompile(`^SOLOIST_([A-Z0-9_]+_)?` +
	`(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_[0-9]+_[A-Z]+(_(PROTO|PORT|ADDR))?)?)$`)

// readEnviron reads KEY=VALUE entries. As in [os.Getenv], the first of a key counts.
func readEnviron(entries []string) map[string]string {
	env := make(map[string]string, len(entries))
	for _, e := range entries {
		key, value, ok := strings.Cut(e, "=")
		if _, dup := env[key]; ok && !dup {
			env[key] = value
		}
	}
	return env
}

// applyEnv makes the variables the defaults of the flags of fs.
func applyEnv(fs *pflag.FlagSet, env map[string]string) {
	fs.VisitAll(func(f *pflag.Flag) {
		name := EnvName(f.Name)
		if s, ok := env[name]; ok && name != "" {
			f.Value.(*value).setEnv(s) // declare makes no other kind
		}
	})
}

// runVariables are what run tells its command, which may be a sidecar.
var runVariables = []string{"SOLOIST_HELD", "SOLOIST_FENCE", "SOLOIST_TOKEN"}

// flagsOf declares a verb's flags to no effect.
func flagsOf(verb string) *pflag.FlagSet {
	fs := pflag.NewFlagSet(verb, pflag.ContinueOnError)
	declare(fs, Default(verb), &raw{}, func(error) {})
	return fs
}

// unknownVariables returns a line for each SOLOIST_… variable that means nothing to any
// verb: one environment serves all containers and probes of a pod.
func unknownVariables(env map[string]string) []string {
	known := []string{passwordEnv, sentinelEnv}
	for _, v := range verbs {
		flagsOf(v.name).VisitAll(func(f *pflag.Flag) {
			if name := EnvName(f.Name); name != "" {
				known = append(known, name)
			}
		})
	}
	var lines []string
	for name := range env {
		if !strings.HasPrefix(name, envPrefix) || serviceVariable.MatchString(name) ||
			slices.Contains(known, name) || slices.Contains(runVariables, name) || slices.Contains(given, name) {
			continue
		}
		lines = append(lines, fmt.Sprintf("unknown variable %s is ignored%s", name, suggest(name, known)))
	}
	slices.Sort(lines)
	return lines
}

// suggest asks whether one of known was meant, if one is near.
func suggest(word string, known []string) string {
	best, least := "", min(3, 2+len(word)/16) // as many typing errors are no typing error
	for _, k := range known {
		if d := distance(word, k, least); d < least {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// distance counts the bytes to insert, delete or replace between a and b. Strings whose
// lengths differ by limit or more are not compared: limit is the answer.
func distance(a, b string, limit int) int {
	if max(len(a)-len(b), len(b)-len(a)) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// FlagNames lists the flags of a verb.
func FlagNames(verb string) []string {
	var names []string
	flagsOf(verb).VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}
