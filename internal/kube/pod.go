package kube

import (
	"context"
	"encoding/json"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/soloist-dev/soloist/internal/podmeta"
)

// component is who we say that we are.
const component = podmeta.Prefix + "sidecar"

var (
	pods   = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	events = schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}
)

// PodClient changes one pod. It is safe for concurrent use.
type PodClient struct {
	pod podmeta.Pod
	api dynamic.Interface
}

// NewPodClient returns a PodClient of pod. It does not connect.
func NewPodClient(c *rest.Config, pod podmeta.Pod) (*PodClient, error) {
	if pod.Namespace == "" || pod.Name == "" || pod.UID == "" {
		return nil, errors.New("kube: the pod's namespace, name and UID are required")
	}
	own := rest.CopyConfig(c)
	own.UserAgent = component
	own.QPS = -1 // the actor sends one request at a time, and backs off
	api, err := dynamic.NewForConfig(own)
	if err != nil {
		return nil, err
	}
	return &PodClient{pod, api}, nil
}

var _ podmeta.API = (*PodClient)(nil)

// PatchMarks implements [podmeta.API].
func (c *PodClient) PatchMarks(ctx context.Context, body []byte) error {
	_, err := c.api.Resource(pods).Namespace(c.pod.Namespace).
		Patch(ctx, c.pod.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: component})
	return failed(err)
}

// PatchStatus implements [podmeta.API].
func (c *PodClient) PatchStatus(ctx context.Context, body []byte) error {
	_, err := c.api.Resource(pods).Namespace(c.pod.Namespace).
		Patch(ctx, c.pod.Name, types.StrategicMergePatchType, body, metav1.PatchOptions{FieldManager: component}, "status")
	return failed(err)
}

// CreateEvent implements [podmeta.API].
func (c *PodClient) CreateEvent(ctx context.Context, body []byte) error {
	var event unstructured.Unstructured
	if err := json.Unmarshal(body, &event.Object); err != nil {
		return err
	}
	_, err := c.api.Resource(events).Namespace(c.pod.Namespace).
		Create(ctx, &event, metav1.CreateOptions{FieldManager: component})
	return failed(err)
}
