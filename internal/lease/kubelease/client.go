package kubelease

import (
	"net/http"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// manager is who we say that we are.
const manager = prefix + "sidecar"

var leases = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

// dial makes the clients. Time-outs and retries are ours alone.
//
// Calls go by HTTP/1.1: there a call that brings no answer takes its connection along, and
// the next one makes its own. By HTTP/2 all would wait for the same dead one until a ping
// is missed, for 45 s, which is longer than a lease. Watches may wait, so they share one.
func (s *Store) dial(c *rest.Config) error {
	c = rest.CopyConfig(c)
	c.UserAgent = manager
	c.QPS, c.RateLimiter = -1, nil
	c.Timeout = 0 // it would end watches
	c.WarningHandler = rest.NoWarnings{}
	var err error
	if s.watches, err = s.client(c); err != nil {
		return err
	}
	c.NextProtos = []string{"http/1.1"}
	c.Wrap(func(rt http.RoundTripper) http.RoundTripper { return edge{rt} })
	s.calls, err = s.client(c)
	return err
}

func (s *Store) client(c *rest.Config) (dynamic.ResourceInterface, error) {
	h, err := rest.HTTPClientFor(c)
	if err != nil {
		return nil, err
	}
	d, err := dynamic.NewForConfigAndClient(c, h)
	if err != nil {
		return nil, err
	}
	s.transports = append(s.transports, h.Transport)
	return d.Resource(leases).Namespace(s.opt.Namespace), nil
}

// closeIdle closes connections that are not in use, which others may share.
func (s *Store) closeIdle() {
	for _, rt := range s.transports {
		utilnet.CloseIdleConnectionsFor(rt)
	}
}

// edge sees the answers before client-go does.
type edge struct{ http.RoundTripper }

type dateKey struct{} // of a *time.Time in a request's context

func (e edge) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := e.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if date, ok := r.Context().Value(dateKey{}).(*time.Time); ok {
		*date, _ = http.ParseTime(resp.Header.Get("Date")) // none: the zero time
	}
	resp.Header.Del("Retry-After") // client-go would sleep, and try again by itself
	return resp, nil
}

// WrappedRoundTripper lets the connections be found.
func (e edge) WrappedRoundTripper() http.RoundTripper { return e.RoundTripper }

// floor is what every fence from now on is above: the server's time in microseconds. It is
// in whole seconds, so the version's last digits tell an object from one that was deleted
// and made anew within one.
func floor(obj *unstructured.Unstructured, date time.Time) uint64 {
	version, _ := strconv.ParseUint(obj.GetResourceVersion(), 10, 64) // 0 if it ever is no number
	us := max(obj.GetCreationTimestamp().UnixMicro(), date.Unix()*1e6, 0)
	if us >= maxFence/2 { // a clock in the next century
		return 0
	}
	return uint64(us) + version%1e6
}
