package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"github.com/soloist-dev/soloist/internal/inject"
)

// settings are what the flags say.
type settings struct {
	listen, health                      string
	namespace, service, secret, webhook string
	lasts                               time.Duration
	restartRules                        string // auto, on or off
	inject                              inject.Options
}

// parse returns pflag.ErrHelp if help was asked for, and written to out.
func parse(args []string, getenv func(string) string, out io.Writer) (settings, error) {
	var (
		s                     settings
		pull, resources, from string
		defaults              []string
	)
	s.inject.Defaults = map[string]string{}
	fs := pflag.NewFlagSet("injector", pflag.ContinueOnError)
	fs.SortFlags = false
	fs.SetOutput(out)
	fs.StringVar(&s.listen, "listen", ":9443", "where the API server calls, by TLS")
	fs.StringVar(&s.health, "health-address", ":8081", "where the kubelet asks /healthz and /readyz")
	fs.StringVar(&s.namespace, "namespace", getenv("POD_NAMESPACE"), "the namespace of the Service and the Secret")
	fs.StringVar(&s.service, "service", "soloist-injector", "the Service by whose name the API server calls")
	fs.StringVar(&s.secret, "secret", "soloist-injector-cert", "the Secret that holds the certificate")
	fs.StringVar(&s.webhook, "webhook", "soloist-injector", "the MutatingWebhookConfiguration that is told of it")
	fs.DurationVar(&s.lasts, "certificate-lifetime", 90*24*time.Hour, "a certificate is renewed when a third of this is left")
	fs.StringVar(&s.inject.Image, "image", "", "the sidecar's image (required)")
	fs.StringVar(&pull, "image-pull-policy", "IfNotPresent", "Always, IfNotPresent or Never")
	fs.StringVar(&resources, "resources", "", "the sidecar's requests and limits, as JSON")
	fs.StringArrayVar(&defaults, "default", nil, "FLAG=VALUE of the sidecar for pods that do not set it (repeatable)")
	store := fs.String("store", "", "short for --default store=URL")
	fs.StringVar(&from, "store-secret", "", "NAME/KEY in the pod's namespace that holds the store's URL")
	fs.StringVar(&s.inject.PasswordSecret, "store-password-secret", "", "the Secret in the pod's namespace that holds the store's password")
	fs.StringVar(&s.restartRules, "restart-rules", "auto", "whether the cluster has container restart rules: auto (by its version), on or off")
	if err := fs.Parse(args); err != nil {
		return s, err
	}
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if fs.NArg() > 0 {
		add("unexpected argument %q", fs.Arg(0))
	}
	for name, v := range map[string]string{"image": s.inject.Image, "namespace (POD_NAMESPACE)": s.namespace} {
		if v == "" {
			add("--%s is required", name)
		}
	}
	s.inject.PullPolicy = corev1.PullPolicy(pull)
	if !slices.Contains([]string{"Always", "IfNotPresent", "Never"}, pull) {
		add("--image-pull-policy must be Always, IfNotPresent or Never, is %q", pull)
	}
	if !slices.Contains([]string{"auto", "on", "off"}, s.restartRules) {
		add("--restart-rules must be auto, on or off, is %q", s.restartRules)
	}
	if s.lasts < time.Minute {
		add("--certificate-lifetime must be at least 1m, is %v", s.lasts)
	}
	s.inject.Resources = inject.DefaultResources()
	if resources != "" {
		s.inject.Resources = corev1.ResourceRequirements{}
		if err := json.Unmarshal([]byte(resources), &s.inject.Resources); err != nil {
			add("--resources: %v", err)
		}
	}
	if *store != "" {
		defaults = append(defaults, "store="+*store)
	}
	for _, d := range defaults {
		flag, value, ok := strings.Cut(d, "=")
		if !ok || !slices.Contains(inject.Flags, flag) || flag == "lock" {
			add("--default must be FLAG=VALUE of one of %s, is %q", strings.Join(inject.Flags[1:], ", "), d)
		}
		s.inject.Defaults[flag] = value
	}
	if from != "" {
		var ok bool
		if s.inject.StoreSecret, s.inject.StoreKey, ok = strings.Cut(from, "/"); !ok {
			add("--store-secret must be NAME/KEY, is %q", from)
		}
	}
	return s, errors.Join(errs...)
}
