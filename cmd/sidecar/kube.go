package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/client-go/rest"

	"github.com/soloist-dev/soloist/internal/config"
	"github.com/soloist-dev/soloist/internal/elector"
	"github.com/soloist-dev/soloist/internal/kube"
	"github.com/soloist-dev/soloist/internal/podmeta"
)

// podMarks returns what shows the elections on this pod; nil where there is no cluster, or
// the pod is not known.
func (p program) podMarks(electors []*elector.Elector, log *slog.Logger) (*podmeta.Actor, error) {
	if p.Pod.Annotate == config.AnnotateOff {
		return nil, nil
	}
	pod := podmeta.Pod{Namespace: p.Identity.Namespace, Name: p.Identity.Pod, UID: p.Identity.PodUID}
	cluster, err := rest.InClusterConfig()
	if err == nil && (pod.Namespace == "" || pod.Name == "" || pod.UID == "") {
		err = errors.New("POD_NAMESPACE, POD_NAME and POD_UID must be set, from the downward API")
	}
	if err != nil {
		if p.Pod.ReadinessGate {
			return nil, err
		}
		log.Info("the pod is not marked", "why", err.Error())
		return nil, nil
	}
	api, err := kube.NewPodClient(cluster, pod)
	if err != nil {
		return nil, err
	}
	return podmeta.New(podmeta.Config{
		Pod: pod, API: api, Elections: elections[podmeta.Election](electors),
		ReadinessGate: p.Pod.ReadinessGate, Log: log,
	}), nil
}

// checkInjection waits until a pod that asks for the sidecar gets it.
func checkInjection(ctx context.Context, p program) int {
	cluster, err := rest.InClusterConfig()
	if err != nil {
		return p.fail(err)
	}
	if p.Identity.Namespace == "" {
		return p.fail(errors.New("POD_NAMESPACE must be set, from the downward API"))
	}
	ctx, cancel := context.WithTimeout(ctx, p.Request.Timeout)
	defer cancel()
	for {
		ok, err := kube.Injected(ctx, cluster, p.Identity.Namespace)
		if ok {
			fmt.Fprintln(p.stdout, "a pod that asks for the sidecar gets it")
			return config.ExitOK
		}
		select {
		case <-time.After(250 * time.Millisecond):
		case <-ctx.Done():
			if err == nil {
				err = fmt.Errorf("after %v a pod that asks for the sidecar still does not get it", p.Request.Timeout)
			}
			return p.fail(err)
		}
	}
}
