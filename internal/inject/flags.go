package inject

// Annotations by which a pod asks.
const (
	Ask    = "soloist.dev/inject"  // "enabled"
	Config = "config.soloist.dev/" // and a flag: its value
	gate   = "soloist.dev/leader"  // the condition that a readiness gate names
	name   = "soloist"             // of the container
)

// Flags lists what a pod may set, in the order of the container's arguments: all flags of
// "sidecar elect" but --name, which is the pod's.
var Flags = []string{
	"lock", "store", "slots", "lease-duration", "renew-deadline", "retry-period",
	"store-username", "store-password-file", "tls-ca-file", "tls-cert-file", "tls-key-file", "tls-server-name",
	"key-prefix", "store-check", "delayed-restart", "http-address", "probe-address", "readiness", "max-locks", "dapr-address", "jobs-only",
	"app-health-url", "app-health-period", "app-health-timeout", "app-health-failures", "require-heartbeat",
	"drain-timeout", "on-lost", "annotate", "fast-failover", "termination-message-path", "readiness-gate", "log-level", "log-format",
}
