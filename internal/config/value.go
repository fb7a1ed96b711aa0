package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// value is a flag's. It keeps what can't be parsed for later, because pflag would stop at
// it and hide the problems that follow. What fails to parse leaves the value as it was.
type value struct {
	flag string
	kind string
	get  func() string
	set  func(string) error
	// env is how the variable sets it, if not like set.
	env func(string) error
	bad func(error)
}

var _ pflag.Value = (*value)(nil)

func (v *value) String() string { return v.get() }
func (v *value) Type() string   { return v.kind }

func (v *value) Set(s string) error {
	v.report(v.set(s))
	return nil
}

func (v *value) setEnv(s string) {
	set := v.set
	if v.env != nil {
		set = v.env
	}
	v.report(set(s))
}

func (v *value) report(err error) {
	if err != nil {
		v.bad(fmt.Errorf("%s: %w", mention(v.flag), err))
	}
}

func textValue[T ~string](p *T) *value {
	return &value{
		kind: "string",
		get:  func() string { return string(*p) },
		set:  func(s string) error { *p = T(s); return nil },
	}
}

func durationValue(p *time.Duration) *value {
	return &value{
		kind: "duration",
		get:  func() string { return brief(*p) },
		set: func(s string) error {
			d, err := time.ParseDuration(s)
			if err != nil {
				return fmt.Errorf("must be a duration such as 500ms, 15s or 1m30s, is %q", harmless(s))
			}
			*p = d
			return nil
		},
	}
}

// optionalValue tells 0 from not given.
func optionalValue(p **time.Duration) *value {
	var d time.Duration
	v := durationValue(&d)
	parse := v.set
	v.get = func() string { return "" }
	v.set = func(s string) error {
		err := parse(s)
		if err == nil {
			*p = &d
		}
		return err
	}
	return v
}

func intValue(p *int) *value {
	return &value{
		kind: "int",
		get:  func() string { return strconv.Itoa(*p) },
		set: func(s string) error {
			n, err := strconv.Atoi(s)
			if err != nil {
				return fmt.Errorf("must be a whole number, is %q", harmless(s))
			}
			*p = n
			return nil
		},
	}
}

func fenceValue(p *uint64) *value {
	return &value{
		kind: "uint64",
		get:  func() string { return "" },
		set: func(s string) error {
			n, err := strconv.ParseUint(s, 10, 64)
			if err != nil || n == 0 {
				return fmt.Errorf("must be a whole number above 0, is %q", harmless(s))
			}
			*p = n
			return nil
		},
	}
}

func boolValue(p *bool) *value {
	return &value{
		kind: "bool",
		get:  func() string { return strconv.FormatBool(*p) },
		set: func(s string) error {
			b, err := strconv.ParseBool(s)
			if err != nil {
				return fmt.Errorf("must be true or false, is %q", harmless(s))
			}
			*p = b
			return nil
		},
	}
}

// listValue takes one entry from each flag, or several from its variable, which the
// first flag replaces.
func listValue(p *[]string) *value {
	flagged := false
	return &value{
		kind: "stringArray",
		get:  func() string { return "" },
		set: func(s string) error {
			if !flagged {
				flagged, *p = true, nil
			}
			*p = append(*p, s)
			return nil
		},
		env: func(s string) error {
			*p = strings.Fields(s)
			return nil
		},
	}
}

// parseLock reads NAME or NAME=SLOTS. It does not judge the name.
func parseLock(s string, slots int) (Election, error) {
	name, count, ok := strings.Cut(s, "=")
	if !ok {
		return Election{Lock: name, Slots: slots}, nil
	}
	n, err := strconv.Atoi(count)
	if err != nil {
		return Election{Lock: name, Slots: slots}, fmt.Errorf("%q must be NAME or NAME=SLOTS with a whole number", harmless(s))
	}
	return Election{Lock: name, Slots: n}, nil
}

// brief writes 24h and not 24h0m0s.
func brief(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
