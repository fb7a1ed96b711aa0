package kubelease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/soloist-dev/soloist/internal/lease"
)

// Options configures a Store. Namespace and Lease must be set.
type Options struct {
	Namespace string // where the Lease objects are
	// Lease is the longest lease in use here: how long one lasts that does not say so.
	Lease time.Duration
	Log   *slog.Logger // nil: discard
}

// Store keeps leases in one namespace of one cluster. It is safe for concurrent use. It
// connects when it is first used; every method gives up when its context is done.
type Store struct {
	opt            Options
	calls, watches dynamic.ResourceInterface
	transports     []http.RoundTripper // of both
	instance       string

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // of watches

	mu    sync.Mutex
	locks map[string]*lock
	last  uint64 // waiters that have joined
}

var (
	_ lease.Store = (*Store)(nil)
	_ lease.Waker = (*Store)(nil)
)

// Open judges the options and returns a Store. It does not connect. The caller owes it a
// Close.
func Open(c *rest.Config, o Options) (*Store, error) {
	if errs := validation.IsDNS1123Label(o.Namespace); len(errs) > 0 {
		return nil, fmt.Errorf("kubelease: namespace %q: %s", o.Namespace, strings.Join(errs, "; "))
	}
	if o.Lease <= 0 {
		return nil, errors.New("kubelease: Options.Lease must be positive")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Store{opt: o, locks: map[string]*lock{}, instance: string(lease.NewToken())[:16]}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if err := s.dial(c); err != nil {
		return nil, err
	}
	return s, nil
}

// Close ends the watches and waits for them. It may be called again.
func (s *Store) Close() error {
	s.cancel()
	s.wg.Wait()
	s.closeIdle()
	return nil
}

// Acquire implements [lease.Store].
func (s *Store) Acquire(ctx context.Context, r lease.Request) (lease.Grant, error) {
	if err := judge(r.Claim, r.TTL); err != nil {
		return lease.Grant{}, err
	}
	g, err := repeat(func() (lease.Grant, error) { return s.acquire(ctx, r) })
	return g, failed("acquire", err)
}

// repeat does it again for as long as somebody else was faster. Each time one of them
// has got on, and a context bounds it.
func repeat[T any](f func() (T, error)) (v T, err error) {
	for {
		if v, err = f(); err == nil {
			return v, nil
		}
		if !errors.Is(err, errStale) {
			var none T
			return none, err
		}
	}
}

func (s *Store) acquire(ctx context.Context, r lease.Request) (g lease.Grant, err error) {
	hash := hashOf(r.Token)
	if s.spent(r.Claim, false) {
		return g, lease.ErrBurned
	}
	now, date, err := s.read(ctx, r.Lock)
	if apierrors.IsNotFound(err) {
		now, err = s.create(ctx, r.Lock, "")
	}
	if err != nil {
		return g, err
	}
	left := s.saw(r.Lock, now)
	mine := left > 0 && now.token == hash
	reclaimed := left > 0 && r.Reclaim && predecessor(now.holder.Identity, r.Holder)
	burned, _ := now.gaveUp(hash)
	dead := left > 0 && !reclaimed && now.token != "" && now.fence == r.Dead // a holder's fence is not 0
	switch {
	case burned:
		return g, lease.ErrBurned
	case now.foreign:
		return g, foreign(now)
	case left > 0 && !mine && !reclaimed && !dead:
		s.watch(r.Claim)
		return g, heldError(now, left)
	case s.spent(r.Claim, true):
		return g, lease.ErrBurned
	case mine:
		g = lease.Grant{Claim: r.Claim, Fence: now.fence}
		return g, s.write(ctx, now.extended(now.fence, max(r.TTL, left)))
	}
	highest := max(now.fence, r.FenceHint, floor(now.obj, date))
	if highest >= maxFence-1 {
		return g, fmt.Errorf("%w: fence out of range", lease.ErrInvalid)
	}
	g = lease.Grant{Claim: r.Claim, Fence: highest + 1, Reclaimed: reclaimed, FromDead: dead}
	return g, s.write(ctx, now.taken(r.Holder, hash, g.Fence, r.TTL))
}

// predecessor reports whether both are the same address of the same pod.
func predecessor(a, b lease.Identity) bool {
	return a.PodUID != "" && a.Address != "" && a.PodUID == b.PodUID && a.Address == b.Address
}

func foreign(r record) error {
	return fmt.Errorf("%w: Lease %q is held by %q, which is no sidecar (choose another name, or delete it)",
		lease.ErrKind, r.obj.GetName(), r.holder.Name)
}

// Extend implements [lease.Store].
func (s *Store) Extend(ctx context.Context, g lease.Grant, e lease.Extension) (lease.Extended, error) {
	if err := judge(g.Claim, e.TTL); err != nil {
		return lease.Extended{}, err
	}
	if e.RaiseTo >= maxFence {
		return lease.Extended{}, fmt.Errorf("%w: fence out of range", lease.ErrInvalid)
	}
	x, err := repeat(func() (lease.Extended, error) { return s.extend(ctx, g, e) })
	return x, failed("extend", err)
}

func (s *Store) extend(ctx context.Context, g lease.Grant, e lease.Extension) (x lease.Extended, err error) {
	hash := hashOf(g.Token)
	now, known := s.own(g.Lock, hash)
	if !known {
		if now, _, err = s.read(ctx, g.Lock); apierrors.IsNotFound(err) {
			return x, lease.ErrLost
		} else if err != nil {
			return x, err
		}
	}
	x.Left = s.saw(g.Lock, now)
	if x.Left == 0 || now.token != hash {
		return x, lease.ErrLost
	}
	if e.RaiseTo != 0 && e.RaiseTo < now.fence {
		return x, fmt.Errorf("%w: stored is %d", lease.ErrFence, now.fence)
	}
	return x, s.write(ctx, now.extended(max(now.fence, e.RaiseTo), max(e.TTL, x.Left)))
}

// Release implements [lease.Store]. A waiter's token that was never in a request that
// could grant it anything is burned in this process alone.
func (s *Store) Release(ctx context.Context, c lease.Claim) (bool, error) {
	if err := judge(c, time.Second); err != nil {
		return false, err
	}
	if s.burn(c) {
		return false, nil
	}
	held, err := repeat(func() (bool, error) { return s.release(ctx, c) })
	return held, failed("release", err)
}

func (s *Store) release(ctx context.Context, c lease.Claim) (held bool, err error) {
	hash := hashOf(c.Token)
	now, known := s.own(c.Lock, hash)
	if !known {
		if now, _, err = s.read(ctx, c.Lock); apierrors.IsNotFound(err) {
			_, err = s.create(ctx, c.Lock, hash)
			return false, err
		} else if err != nil {
			return false, err
		}
	}
	left := s.saw(c.Lock, now)
	burned, held := now.gaveUp(hash)
	switch {
	case now.foreign:
		return false, foreign(now)
	case burned && now.token != hash:
		return held, nil
	}
	held = left > 0 && now.token == hash
	return held, s.write(ctx, now.released(hash, held))
}

// Inspect implements [lease.Store]. What is left is the lesser of what this process has
// seen and what the holder's wall clock wrote: the first time, only that says anything.
func (s *Store) Inspect(ctx context.Context, name string) (lease.Info, error) {
	info := lease.Info{Lock: name}
	if err := judgeName(name); err != nil {
		return info, err
	}
	now, _, err := s.read(ctx, name)
	if apierrors.IsNotFound(err) {
		return info, nil
	}
	if err != nil {
		return info, failed("inspect", err)
	}
	info.Fence = now.fence
	if left := s.saw(name, now); left > 0 {
		if !now.renewed.IsZero() {
			left = max(min(left, time.Until(now.renewed.Add(now.length))), 0)
		}
		info.Holders = []lease.HolderInfo{{Fence: now.fence, Holder: now.holder, Left: left}}
	}
	return info, nil
}

// read returns the object, and the server's time if it said so.
func (s *Store) read(ctx context.Context, name string) (r record, date time.Time, err error) {
	obj, err := s.calls.Get(context.WithValue(ctx, dateKey{}, &date), name, metav1.GetOptions{})
	if err != nil {
		return r, date, err
	}
	return decode(obj, s.opt.Lease), date, nil
}

// create makes the object of a free lock. A grant comes with a write of its own, since
// its fence is above what the server says of the object.
func (s *Store) create(ctx context.Context, name, burned string) (record, error) {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": leases.GroupVersion().String(), "kind": "Lease"}}
	obj.SetName(name)
	obj.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "soloist"})
	if burned != "" {
		obj.SetAnnotations(map[string]string{noteBurned: burned})
	}
	out, err := s.calls.Create(ctx, obj, metav1.CreateOptions{FieldManager: manager})
	if apierrors.IsAlreadyExists(err) {
		return record{}, errStale
	}
	if err != nil {
		return record{}, err
	}
	return decode(out, s.opt.Lease), nil
}

// write replaces the version that obj was made of. errStale: it is not the newest. Without
// its uid the server would create an object that was deleted meanwhile, and without its
// version replace any.
func (s *Store) write(ctx context.Context, obj *unstructured.Unstructured) error {
	if obj.GetUID() == "" || obj.GetResourceVersion() == "" {
		return fmt.Errorf("%w: no uid or no resourceVersion", errReply)
	}
	out, err := s.calls.Update(ctx, obj, metav1.UpdateOptions{FieldManager: manager})
	if err == nil {
		r := decode(out, s.opt.Lease)
		s.written(obj.GetName(), &r)
		return nil
	}
	s.written(obj.GetName(), nil)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return errStale
	}
	return err
}
