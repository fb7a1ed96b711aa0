package kubelease

import (
	"errors"

	"github.com/soloist-dev/soloist/internal/kube/reason"
	"github.com/soloist-dev/soloist/internal/lease"
)

// newError returns err as what the store said to op.
func newError(op, kind string, err error) error {
	return &lease.StoreError{Store: "kubernetes", Op: op, Kind: kind, Advice: advice[kind], Err: err}
}

// advice says what to do about errors that do not go away by themselves.
var advice = map[string]string{
	reason.Forbidden:    "the service account needs get, create, update and watch on leases.coordination.k8s.io in that namespace",
	reason.Unauthorized: "the server does not know this service account's token: is it mounted, and of this cluster?",
	reason.NotFound:     "the namespace does not exist",
	reason.Invalid:      "a policy or webhook of the cluster refuses the Lease",
}

// Not for callers.
var (
	errStale = errors.New("changed since it was read")
	errReply = errors.New("reply makes no sense")
)

// failed wraps what client-go returned for op; verdicts stay as they are.
func failed(op string, err error) error {
	if err == nil || lease.IsVerdict(err) {
		return err
	}
	return newError(op, kindOf(err), err)
}

func kindOf(err error) string {
	if errors.Is(err, errReply) {
		return lease.KindProtocol
	}
	if kind := reason.Of(err); kind != "" {
		return kind
	}
	return lease.NetworkKind(err)
}
