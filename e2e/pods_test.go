package e2e

import "encoding/json"

// object is a part of a manifest.
type object = map[string]any

// manifest is an object as JSON, which kubectl takes.
func manifest(o object) string {
	b, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// container is one that Pod Security "restricted" takes.
func container(name, image string, args ...string) object {
	return object{
		"name": name, "image": image, "args": args,
		"securityContext": object{
			"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": object{"drop": []string{"ALL"}},
		},
	}
}

// podSpec is of pods of these containers.
func podSpec(restart string, containers ...object) object {
	return object{
		"restartPolicy":                 restart,
		"terminationGracePeriodSeconds": 5,
		"securityContext": object{
			"runAsNonRoot": true, "runAsUser": 65532, "seccompProfile": object{"type": "RuntimeDefault"},
		},
		"containers": containers,
	}
}

// enabled are annotations of a pod that asks for the sidecar.
func enabled(flags ...string) map[string]string {
	a := map[string]string{"soloist.dev/inject": "enabled"}
	for i := 0; i < len(flags); i += 2 {
		a["config.soloist.dev/"+flags[i]] = flags[i+1]
	}
	return a
}

// asks is the metadata of a pod that asks for the sidecar. Those of TestJobs have no name of their own.
func asks(flags ...string) object {
	return object{"annotations": enabled(flags...), "labels": object{"e2e": "workload"}}
}

// beating is a pod that asks, of an app that does nothing.
func beating(namespace, name, restart string, flags ...string) string {
	metadata, spec := asks(flags...), podSpec(restart, container("app", beatImage))
	metadata["name"], metadata["namespace"] = name, namespace
	spec["serviceAccountName"] = "city-ids"
	return manifest(object{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
}
