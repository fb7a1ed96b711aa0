package podmeta

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/soloist-dev/soloist/internal/elector"
)

// Condition is the type of the condition that a readiness gate may name.
const Condition = Prefix + "leader"

const (
	microTime = "2006-01-02T15:04:05.000000Z07:00"
	component = Prefix + "sidecar"
)

// Pod names this pod. The UID keeps what is meant for it from its namesake.
type Pod struct{ Namespace, Name, UID string }

type object = map[string]any

// patch returns the JSON merge patch that changes a pod's marks from those of before (nil:
// not known) to m. A UID in it is a precondition: of another pod nothing is changed.
func (p Pod) patch(before *marks, m marks) []byte {
	if before == nil {
		before = &marks{}
	}
	return encode(object{"metadata": object{
		"uid":         p.UID,
		"labels":      difference(before.labels, m.labels),
		"annotations": difference(before.annotations, m.annotations),
	}})
}

// difference returns what has to be set, and null for what has to go.
func difference(from, to map[string]string) object {
	d := object{}
	for k, v := range to {
		if old, ok := from[k]; !ok || old != v {
			d[k] = v
		}
	}
	for k := range from {
		if _, ok := to[k]; !ok {
			d[k] = nil
		}
	}
	return d
}

// condition returns the strategic merge patch that sets the condition and leaves the
// pod's others alone, which a JSON merge patch would replace.
func (p Pod) condition(leading bool, reason elector.Reason, since time.Time) []byte {
	status := "False"
	if leading {
		status = "True"
	}
	return encode(object{
		"metadata": object{"uid": p.UID},
		"status": object{"conditions": []object{{
			"type": Condition, "status": status, "message": string(reason),
			"lastTransitionTime": since.UTC().Format(time.RFC3339),
		}}},
	})
}

// event returns an Event of events.k8s.io/v1 about this pod.
func (p Pod) event(o occasion) []byte {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	kind := "Normal"
	if o.warning {
		kind = "Warning"
	}
	return encode(object{
		"apiVersion": "events.k8s.io/v1", "kind": "Event",
		"metadata":            object{"namespace": p.Namespace, "name": p.Name + "." + hex.EncodeToString(b[:])},
		"eventTime":           o.at.UTC().Format(microTime),
		"reportingController": component, "reportingInstance": p.Name,
		"action": "Elect", "reason": o.reason, "note": o.note, "type": kind,
		"regarding": object{"apiVersion": "v1", "kind": "Pod", "namespace": p.Namespace, "name": p.Name, "uid": p.UID},
	})
}

func encode(o object) []byte {
	b, err := json.Marshal(o)
	if err != nil {
		panic(err) // maps of strings
	}
	return b
}
