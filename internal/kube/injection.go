package kube

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// Injected creates a pod that asks for the sidecar, as a dry run, and reports whether it
// came back with one. Nothing is left of it. It blocks until the server has answered, or
// ctx is done.
func Injected(ctx context.Context, c *rest.Config, namespace string) (bool, error) {
	api, err := dynamic.NewForConfig(c)
	if err != nil {
		return false, err
	}
	pod := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{
			"generateName": "soloist-check-",
			"labels":       map[string]any{"app.kubernetes.io/name": "soloist-check"},
			"annotations":  map[string]any{"soloist.dev/inject": "enabled", "config.soloist.dev/lock": "check"},
		},
		"spec": map[string]any{
			"automountServiceAccountToken": false,
			"securityContext": map[string]any{
				"runAsNonRoot": true, "runAsUser": int64(65532),
				"seccompProfile": map[string]any{"type": "RuntimeDefault"},
			},
			"containers": []any{map[string]any{
				"name": "app", "image": "soloist.dev/check:none",
				"resources": map[string]any{
					"requests": map[string]any{"cpu": "1m", "memory": "1Mi"},
					"limits":   map[string]any{"cpu": "1m", "memory": "1Mi"},
				},
				"securityContext": map[string]any{
					"allowPrivilegeEscalation": false, "capabilities": map[string]any{"drop": []any{"ALL"}},
				},
			}},
		},
	}}
	made, err := api.Resource(pods).Namespace(namespace).
		Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return false, failed(err)
	}
	containers, _, err := unstructured.NestedSlice(made.Object, "spec", "initContainers")
	for _, c := range containers {
		if m, ok := c.(map[string]any); ok && m["name"] == "soloist" {
			return true, nil
		}
	}
	return false, err
}
