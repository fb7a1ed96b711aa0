package config

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Parse reads the flags of a verb (see [Verb]) and the environment, in the form of
// [os.Environ], and judges the result. Its warnings are worth a log line each, also when
// there is an error. The error is a *[HelpError] if help is asked for; else it joins one
// line for each problem, and the caller exits with [ExitUsage]. Parse reads no files; it
// looks up the hostname, if nothing else names the candidate.
func Parse(verb string, args, environ []string) (*Config, []string, error) {
	if _, ok := findVerb(verb); !ok {
		return nil, nil, unknownVerb(verb)
	}
	env := readEnviron(environ)
	r := read(verb, args, env)
	if r.raw.help {
		return nil, nil, &HelpError{Text: r.help()}
	}
	r.fill(env)
	warnings := append(unknownVariables(env), r.config.warnings(env)...)
	if err := errors.Join(errors.Join(r.problems...), r.config.Validate()); err != nil {
		return nil, warnings, err
	}
	return r.config, warnings, nil
}

// reader is one reading of a command line.
type reader struct {
	config   *Config
	raw      raw
	flags    *pflag.FlagSet
	problems []error
}

func newReader(verb string, args []string, env map[string]string) (*reader, error) {
	r := &reader{config: Default(verb), flags: pflag.NewFlagSet(verb, pflag.ContinueOnError)}
	declare(r.flags, r.config, &r.raw, func(err error) { r.problems = append(r.problems, err) })
	applyEnv(r.flags, env)
	return r, r.flags.Parse(args)
}

// read reads all of the command line. pflag stops at what it does not know, so that is
// noted, dropped, and the rest is read again.
func read(verb string, args []string, env map[string]string) *reader {
	var stray []error
	for {
		r, err := newReader(verb, args, env)
		rest, problem := r.drop(args, err)
		if problem != nil {
			stray = append(stray, problem)
		}
		if len(rest) < len(args) {
			args = rest
			continue
		}
		if operands[verb] != "" {
			r.config.Args = r.flags.Args()
		} else if len(stray) == 0 { // else they are likely the values of unknown flags
			for _, arg := range r.flags.Args() {
				stray = append(stray, fmt.Errorf("unexpected argument %q", harmless(arg)))
			}
		}
		r.problems = append(stray, r.problems...)
		return r
	}
}

// drop returns the problem that pflag's err is, and args without what caused it.
func (r *reader) drop(args []string, err error) ([]string, error) {
	var (
		unknown *pflag.NotExistError
		syntax  *pflag.InvalidSyntaxError
		missing *pflag.ValueRequiredError
	)
	var bad string
	switch {
	case err == nil:
		return args, nil
	case errors.As(err, &missing):
		return args, fmt.Errorf("%s: needs a value", mention(missing.GetFlag().Name))
	case errors.As(err, &syntax):
		bad, _, _ = strings.Cut(syntax.GetSpecifiedFlag(), "=")
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		bad = "--" + unknown.GetSpecifiedName()
	case errors.As(err, &unknown):
		bad, _, _ = strings.Cut(unknown.GetSpecifiedShortnames(), "=")
		bad = "-" + bad
	default:
		return args, err
	}
	var known []string
	r.flags.VisitAll(func(f *pflag.Flag) { known = append(known, "--"+f.Name) })
	hint := suggest("--"+strings.TrimLeft(bad, "-"), known)
	return without(args, bad), fmt.Errorf("unknown flag %q%s", harmless(bad), hint)
}

// without drops the arguments that are bad or bad=…; in a group of shorthands also those
// that end in it.
func without(args []string, bad string) []string {
	short := !strings.HasPrefix(bad, "--")
	return slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		if short && strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--") {
			return strings.HasSuffix(name, bad[1:])
		}
		return name == bad
	})
}

// harmless hides what may be a URL with a password, given to the wrong flag or to none.
func harmless(arg string) string {
	if strings.Contains(arg, "@") {
		return redacted
	}
	return arg
}

// fill makes the Config of what is not a flag, or not only.
func (r *reader) fill(env map[string]string) {
	c := r.config
	for _, s := range r.raw.locks {
		e, err := parseLock(s, r.raw.slots)
		if err != nil {
			r.problems = append(r.problems, fmt.Errorf("%s: %w", mention("lock"), err))
		}
		c.Elections = append(c.Elections, e)
	}
	for _, s := range r.raw.stores {
		u := NewStoreURL(s)
		if _, password := u.user(); password && r.flags.Changed("store") {
			r.problems = append(r.problems, fmt.Errorf("%s: a password on the command line is there for all to see: leave "+
				"it out, and set %s or --store-password-file, or put the URL into SOLOIST_STORE", mention("store"), passwordEnv))
		}
		c.Store.URLs = append(c.Store.URLs, u)
	}
	if r.flags.Lookup("store") != nil {
		if len(r.raw.stores) == 0 && env["KUBERNETES_SERVICE_HOST"] != "" {
			c.Store.URLs = []StoreURL{NewStoreURL(Kubernetes)}
		}
		c.Store.Password = NewSecret(strings.TrimSpace(env[passwordEnv]))
		c.Store.SentinelPassword = NewSecret(strings.TrimSpace(env[sentinelEnv]))
	}
	if f := r.flags.Lookup("name"); f != nil {
		_, named := env[EnvName("name")]
		if !named && !f.Changed {
			host, _ := os.Hostname() // if it fails, Validate says that there is no name
			c.Identity.Name = cmp.Or(env["POD_NAME"], host)
		}
	}
	c.Identity.Pod = env["POD_NAME"]
	c.Identity.Namespace = env["POD_NAMESPACE"]
	c.Identity.PodUID = env["POD_UID"]
	c.Identity.Node = env["NODE_NAME"]
}
