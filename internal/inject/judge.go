package inject

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Judge returns what is wrong with the annotations of a pod that asks, all at once; nil if
// nothing is. The sidecar judges its flags itself, more closely; this is so that what is
// plainly wrong is refused at admission, where somebody looks, and not in a log.
func Judge(annotations map[string]string, o Options) error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf("soloist: "+format, args...)) }
	var unknown []string
	for key := range annotations {
		if flag, ok := strings.CutPrefix(key, Config); ok && !slices.Contains(Flags, flag) {
			unknown = append(unknown, key)
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		add("unknown annotation %s; known are %s and one of %s", strings.Join(unknown, ", "), Config, strings.Join(Flags, ", "))
	}
	conf := effective(annotations, o)
	if lock := conf["lock"]; conf["jobs-only"] == "true" {
		if lock != "" {
			add("annotation %sjobs-only is for a pod without %slock", Config, Config)
		}
	} else if lock == "" {
		add("annotation %slock is required: the name of the lock; or jobs-only without it", Config)
	} else if !lockName.MatchString(lock) {
		add("annotation %slock must be one name of 1 to 200 of a-z 0-9 - . _ / that begins and ends with a letter or digit, "+
			"and =SLOTS if several lead at once; is %q", Config, lock)
	}
	for flag, allowed := range choices {
		if v, ok := conf[flag]; ok && !slices.Contains(allowed, v) {
			add("annotation %s%s must be one of %s, is %q", Config, flag, strings.Join(allowed, ", "), v)
		}
	}
	if slots, ok := conf["slots"]; ok {
		if n, err := strconv.Atoi(slots); err != nil || n < 0 || n > 1000 {
			add("annotation %sslots must be 0 to 1000, is %q", Config, slots)
		}
	}
	if locks, ok := conf["max-locks"]; ok {
		if n, err := strconv.Atoi(locks); err != nil || n < 0 || n > 100_000 {
			add("annotation %smax-locks must be 0 to 100000, is %q", Config, locks)
		}
	}
	// The probes, the hooks and the variables of the app count on them.
	for flag, port := range map[string]string{"http-address": ":4040", "probe-address": ":4041"} {
		if v, ok := conf[flag]; ok && !strings.HasSuffix(v, port) {
			add("annotation %s%s must end in %s, is %q", Config, flag, port, v)
		}
	}
	if withPassword.MatchString(conf["store"]) {
		add("annotation %sstore must not hold a password: the sidecar gets that from the Secret %s", Config, o.PasswordSecret)
	}
	errs = append(errs, judgeTimes(conf)...)
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

var (
	lockName     = regexp.MustCompile(`^[a-z0-9]([a-z0-9._/-]{0,198}[a-z0-9])?(=[0-9]{1,4})?$`)
	withPassword = regexp.MustCompile(`^[a-z+]+://[^/@]*:[^/@]*@`)

	choices = map[string][]string{
		"store-check":     {"strict", "warn"},
		"delayed-restart": {"auto", "on", "off"},
		"readiness":       {"store", "leader"},
		"on-lost":         {"none", "exit"},
		"annotate":        {"auto", "off"},
		"fast-failover":   {"off", "pod"},
		"readiness-gate":  {"true", "false"},
		"jobs-only":       {"true", "false"},
		"log-level":       {"debug", "info", "warn", "error"},
		"log-format":      {"json", "text"},
	}
	// times are the durations, with the sidecar's own defaults.
	times = map[string]string{
		"lease-duration": "15s", "renew-deadline": "10s", "retry-period": "2s",
		"app-health-period": "2s", "app-health-timeout": "1s", "require-heartbeat": "0", "drain-timeout": "0",
	}
)

func judgeTimes(conf map[string]string) []error {
	var errs []error
	d := map[string]time.Duration{}
	for flag, value := range times {
		if v, ok := conf[flag]; ok {
			value = v
		}
		var err error
		if d[flag], err = time.ParseDuration(value); err != nil || d[flag] < 0 || d[flag] > 24*time.Hour {
			errs = append(errs, fmt.Errorf("soloist: annotation %s%s must be a duration such as 15s, is %q", Config, flag, value))
		}
	}
	if len(errs) > 0 {
		return errs
	}
	lease, deadline := d["lease-duration"], d["renew-deadline"]
	if deadline+deadline/50+10*time.Millisecond > lease {
		errs = append(errs, fmt.Errorf("soloist: renew-deadline × 1.02 + 10ms must be ≤ lease-duration: %v against %v", deadline, lease))
	}
	if 2*d["retry-period"] > deadline {
		errs = append(errs, fmt.Errorf("soloist: retry-period × 2 must be ≤ renew-deadline: %v against %v", d["retry-period"], deadline))
	}
	if conf["on-lost"] == "exit" && lease-deadline < 4*time.Second {
		errs = append(errs, errors.New("soloist: on-lost=exit needs lease-duration - renew-deadline of 4s or more: "+
			"a restart of all containers takes about 3s to stop the app"))
	}
	if d["app-health-timeout"] > d["app-health-period"] {
		errs = append(errs, errors.New("soloist: app-health-timeout must be ≤ app-health-period"))
	}
	return errs
}
