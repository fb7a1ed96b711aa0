package inject

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// exitLost is the sidecar's exit code for a lost term: config.ExitLost.
const exitLost = 42

// Options say what every pod gets.
type Options struct {
	Image      string
	PullPolicy corev1.PullPolicy
	// Defaults are values of [Flags] for pods that do not set them.
	Defaults map[string]string
	// PasswordSecret names the Secret, in the pod's namespace, whose key "password" is the
	// store's, if there is one.
	PasswordSecret string
	// StoreSecret and StoreKey name a key with the store's URL, in the pod's namespace.
	// "": the URL is a flag.
	StoreSecret, StoreKey string
	Resources             corev1.ResourceRequirements
	// RestartRules: the cluster has container restart rules (Kubernetes 1.36).
	RestartRules bool
}

// DefaultResources are what a sidecar needs to be in time on a node that is full, where the
// CPUs are shared by requests; at rest it uses a twentieth of them.
func DefaultResources() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("20m"), corev1.ResourceMemory: resource.MustParse("24Mi"),
		},
		Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")},
	}
}

// Asked reports whether a pod asks for the sidecar.
func Asked(p *corev1.Pod) bool { return p.Annotations[Ask] == "enabled" }

// Pod puts the sidecar into p, if it asks for it and has none yet, and the variables into
// its containers. It may be called again: what is there stays. Its error says what is
// wrong with the annotations; p is then as it was.
func Pod(p *corev1.Pod, o Options) error {
	if !Asked(p) {
		return nil
	}
	if err := Judge(p.Annotations, o); err != nil {
		return err
	}
	conf := effective(p.Annotations, o)
	if !slices.ContainsFunc(p.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == name }) {
		p.Spec.InitContainers = slices.Insert(p.Spec.InitContainers, 0, Sidecar(conf, o))
	}
	isGate := func(g corev1.PodReadinessGate) bool { return g.ConditionType == gate }
	if conf["readiness-gate"] == "true" && !slices.ContainsFunc(p.Spec.ReadinessGates, isGate) {
		p.Spec.ReadinessGates = append(p.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: gate})
	}
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		for _, v := range Variables() {
			if !slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == v.Name }) {
				c.Env = append(c.Env, v)
			}
		}
	}
	return nil
}

// effective returns the flags that are set, by the pod or else by default.
func effective(annotations map[string]string, o Options) map[string]string {
	conf := map[string]string{}
	for _, flag := range Flags {
		if v, ok := annotations[Config+flag]; ok {
			conf[flag] = v
		} else if v, ok := o.Defaults[flag]; ok {
			conf[flag] = v
		}
	}
	return conf
}

// Variables tell the app where to ask, by our name and by those that contrib's and NAIS's
// electors made known.
func Variables() []corev1.EnvVar {
	return []corev1.EnvVar{
		{Name: "SOLOIST_URL", Value: "http://localhost:4040"},
		{Name: "ELECTOR_PATH", Value: "localhost:4040"},
		{Name: "ELECTOR_GET_URL", Value: "http://localhost:4040/"},
		{Name: "ELECTOR_SSE_URL", Value: "http://localhost:4040/sse"},
	}
}

// Sidecar returns the container for flags with these values: a native sidecar, so that
// Jobs complete and the app stops first.
func Sidecar(conf map[string]string, o Options) corev1.Container {
	args := []string{"elect"}
	for _, flag := range Flags {
		if v, ok := conf[flag]; ok {
			args = append(args, "--"+flag+"="+v)
		}
	}
	c := corev1.Container{
		Name: name, Image: o.Image, ImagePullPolicy: o.PullPolicy,
		RestartPolicy: ptr(corev1.ContainerRestartPolicyAlways),
		Args:          args,
		Env:           environment(o),
		Ports:         []corev1.ContainerPort{{Name: "soloist-probe", ContainerPort: 4041}},
		Lifecycle: &corev1.Lifecycle{
			// The app starts when it can ask: a second sooner than with a startup probe.
			PostStart: run("/sidecar", "wait", "--timeout=30s"),
			PreStop:   run("/sidecar", "drain"),
		},
		ReadinessProbe: probe("/readyz", 2, 0),
		LivenessProbe:  probe("/livez", 5, 3),
		Resources:      o.Resources,
		SecurityContext: &corev1.SecurityContext{
			RunAsNonRoot: ptr(true), RunAsUser: ptr(int64(65532)), RunAsGroup: ptr(int64(65532)),
			AllowPrivilegeEscalation: ptr(false), ReadOnlyRootFilesystem: ptr(true),
			Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
	if conf["on-lost"] == "exit" && o.RestartRules {
		c.RestartPolicyRules = []corev1.ContainerRestartRule{{
			Action: corev1.ContainerRestartRuleActionRestartAllContainers,
			ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{
				Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{exitLost},
			},
		}}
	}
	return c
}

func environment(o Options) []corev1.EnvVar {
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
	}
	secret := func(name, secret, key string, optional *bool) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: key, Optional: optional,
		}}}
	}
	env := []corev1.EnvVar{
		field("POD_NAME", "metadata.name"), field("POD_NAMESPACE", "metadata.namespace"),
		field("POD_UID", "metadata.uid"), field("NODE_NAME", "spec.nodeName"),
	}
	if o.StoreSecret != "" {
		env = append(env, secret("SOLOIST_STORE", o.StoreSecret, o.StoreKey, nil))
	}
	if o.PasswordSecret != "" {
		env = append(env, secret("SOLOIST_STORE_PASSWORD", o.PasswordSecret, "password", ptr(true)))
	}
	return env
}

func run(command ...string) *corev1.LifecycleHandler {
	return &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: command}}
}

func probe(path string, period, failures int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(4041)}},
		PeriodSeconds: period, FailureThreshold: failures,
	}
}

func ptr[T any](v T) *T { return &v }
