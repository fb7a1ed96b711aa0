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
	"github.com/soloist-dev/soloist/internal/lease"
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
		ReadinessGate: p.Pod.ReadinessGate, LastWords: p.lastWords(), Log: log,
	}), nil
}

// lastWords is how long the pod's marks have to show the end; 0: as long as they take by
// themselves. When containers are to restart, the lease must outlive the app.
func (p program) lastWords() time.Duration {
	if p.App.OnLost != config.LostExit {
		return 0
	}
	return min(time.Second, p.Timing.LeaseDuration-p.Timing.RenewDeadline-config.RestartTakes)
}

// failover is what the elections need for fast failover.
type failover struct {
	cluster *rest.Config             // nil: no fast failover
	message *kube.TerminationMessage // nil: there is no such file
}

func (p program) failover(log *slog.Logger) (f failover, err error) {
	f.message = kube.NewTerminationMessage(p.Pod.TerminationMessage)
	if p.Pod.FastFailover != config.FailoverPod {
		return f, nil
	}
	if f.cluster, err = rest.InClusterConfig(); err != nil {
		return f, fmt.Errorf("--fast-failover=pod: %w", err)
	}
	if f.message == nil {
		log.Warn("this pod's own death can't be proven, so others will wait for its lease",
			"why", "the termination message can't be written", "path", p.Pod.TerminationMessage)
	}
	return f, nil
}

// detector returns what learns of deaths; nil without fast failover.
func (f failover) detector(namespace, lock string, log *slog.Logger) (lease.FailureDetector, error) {
	if f.cluster == nil {
		return nil, nil
	}
	return kube.NewDeaths(f.cluster, namespace, lock, log)
}

// onGrant notes each term of lock where it outlives this process.
func (f failover) onGrant(lock string, log *slog.Logger) func(uint64) {
	if f.message == nil {
		return nil
	}
	return func(fence uint64) {
		if err := f.message.Add(lock, fence); err != nil {
			log.Warn("the term is not noted in the termination message", "lock", lock, "error", err)
		}
	}
}

// onLost notes why the process is about to end.
func (f failover) onLost(lock string, reason elector.Reason, log *slog.Logger) {
	if f.message == nil {
		return
	}
	if err := f.message.Lost(lock, string(reason)); err != nil {
		log.Warn("the loss is not noted in the termination message", "lock", lock, "error", err)
	}
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
