package kube

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/soloist-dev/soloist/internal/lease"
)

// lookAgain is the pause after a watch that broke, or an API server that failed; it
// doubles up to maxPause.
const (
	lookAgain = 100 * time.Millisecond
	maxPause  = 5 * time.Second
)

// Deaths proves deaths of pods. It is safe for concurrent use.
type Deaths struct {
	lock      string
	namespace string
	api       dynamic.Interface
	log       *slog.Logger
}

// NewDeaths returns a detector for the leaders of lock, which are pods of one namespace.
// It does not connect.
func NewDeaths(c *rest.Config, namespace, lock string, log *slog.Logger) (*Deaths, error) {
	if namespace == "" {
		return nil, errors.New("kube: the pods' namespace is required")
	}
	own := rest.CopyConfig(c)
	own.UserAgent = component
	own.QPS = -1 // one watch at a time, and pauses
	api, err := dynamic.NewForConfig(own)
	if err != nil {
		return nil, err
	}
	return &Deaths{lock, namespace, api, log.With("lock", lock)}, nil
}

var _ lease.FailureDetector = (*Deaths)(nil)

// Dead implements [lease.FailureDetector]: it watches the holder's pod. What proves the
// death is the status of a pod of the holder's UID in which every container has ended, one
// of them with the holder's term in its termination message. An object that is gone, or a
// phase, proves nothing: the processes may be alive on a node that nobody hears of.
//
// An API server that fails is asked again until ctx is done.
func (d *Deaths) Dead(ctx context.Context, h lease.Held) bool {
	if h.Holder.Name == "" || h.Holder.PodUID == "" {
		return false
	}
	said := false
	for pause := lookAgain; ; pause = min(2*pause, maxPause) {
		began := time.Now()
		verdict, err := d.watch(ctx, h)
		switch {
		case verdict == proven:
			d.log.Info("the leader's pod is dead; its lease is not waited for", "pod", h.Holder.Name, "fence", h.Term)
			return true
		case verdict == never, ctx.Err() != nil:
			return false
		case err != nil && !said:
			said = true
			d.log.Warn("can't watch the leader's pod; its lease is waited for", "pod", h.Holder.Name, "error", err)
		}
		if time.Since(began) > maxPause {
			pause = lookAgain
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false
		}
	}
}

// verdict is what a status of a pod says about a holder.
type verdict int

const (
	open   verdict = iota // not yet
	proven                // dead
	never                 // no proof can come: the pod is another, or gone
)

// watch looks at the pod, and then at what changes, until there is a verdict or the watch
// ends.
func (d *Deaths) watch(ctx context.Context, h lease.Held) (verdict, error) {
	api := d.api.Resource(pods).Namespace(d.namespace)
	pod, err := api.Get(ctx, h.Holder.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return never, nil
	}
	if err != nil {
		return open, failed(err)
	}
	if v := judge(pod, d.lock, h); v != open {
		return v, nil
	}
	w, err := api.Watch(ctx, metav1.ListOptions{
		FieldSelector:   fields.OneTermEqualSelector("metadata.name", h.Holder.Name).String(),
		ResourceVersion: pod.GetResourceVersion(),
	})
	if err != nil {
		return open, failed(err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		pod, ok := event.Object.(*unstructured.Unstructured)
		if !ok || pod.GetKind() == "Status" { // the watch is too old
			return open, nil
		}
		if v := judge(pod, d.lock, h); v != open {
			return v, nil
		}
	}
	return open, nil
}

// judge says what a pod's status proves. The last state of a deleted pod counts as any.
func judge(pod *unstructured.Unstructured, lock string, h lease.Held) verdict {
	if string(pod.GetUID()) != h.Holder.PodUID {
		return never
	}
	var p struct {
		Spec struct {
			InitContainers, Containers, EphemeralContainers []struct{ Name string }
		}
		Status struct {
			InitContainerStatuses, ContainerStatuses, EphemeralContainerStatuses []status
		}
	}
	text, err := json.Marshal(pod.Object)
	if err != nil || json.Unmarshal(text, &p) != nil {
		return open
	}
	named := false
	for _, kind := range []struct {
		containers int
		statuses   []status
	}{
		{len(p.Spec.InitContainers), p.Status.InitContainerStatuses},
		{len(p.Spec.Containers), p.Status.ContainerStatuses},
		{len(p.Spec.EphemeralContainers), p.Status.EphemeralContainerStatuses},
	} {
		if len(kind.statuses) != kind.containers {
			return open
		}
		for _, s := range kind.statuses {
			if s.State.Terminated == nil {
				return open
			}
			named = named || strings.Contains(s.State.Terminated.Message, term(lock, h.Term))
		}
	}
	if !named {
		return open
	}
	return proven
}

// status is of one container, as far as it matters here.
type status struct {
	State struct {
		Terminated *struct{ Message string }
	}
}
