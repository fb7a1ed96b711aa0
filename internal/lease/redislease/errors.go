package redislease

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
	"github.com/soloist-dev/soloist/internal/lease"
)

// Kinds of an Error: a closed set, fit for a metric's label.
const (
	KindTimeout   = "timeout"
	KindRefused   = "refused"   // nobody listens
	KindClosed    = "closed"    // the connection broke: the request may have been executed
	KindLoading   = "loading"   // LOADING
	KindReadOnly  = "readonly"  // READONLY, MASTERDOWN: a replica
	KindMemory    = "oom"       // OOM
	KindBusy      = "busy"      // BUSY: a script of somebody's runs for too long
	KindMisconf   = "misconf"   // MISCONF, NOREPLICAS: writes are stopped
	KindAuth      = "auth"      // NOAUTH, WRONGPASS
	KindNoPerm    = "noperm"    // NOPERM
	KindWrongType = "wrongtype" // a key of ours holds something else
	KindNoScript  = "noscript"  // scripts are not to be had here
	KindCluster   = "cluster"   // MOVED, CLUSTERDOWN, CROSSSLOT, TRYAGAIN
	KindEviction  = "eviction"  // the server may throw locks away
	KindProtocol  = "protocol"  // a reply that makes no sense
	KindOther     = "other"
)

// Error is an answer that is no verdict, or the lack of one.
type Error struct {
	Op   string // acquire, extend, release, inspect, subscribe, check
	Kind string
	Err  error
}

func (e *Error) Error() string {
	if advice := advice[e.Kind]; advice != "" {
		return fmt.Sprintf("redis %s: %v (%s)", e.Op, e.Err, advice)
	}
	return fmt.Sprintf("redis %s: %v", e.Op, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// ErrorKind returns the kind, for metrics.
func (e *Error) ErrorKind() string { return e.Kind }

// advice says what to do about errors that do not go away by themselves.
var advice = map[string]string{
	KindReadOnly:  "this is a replica: point --store at the primary",
	KindMemory:    "the server is out of memory: raise maxmemory or give the locks a server of their own",
	KindMisconf:   "the server refuses writes: see its log for why it can't save or reach its replicas",
	KindAuth:      "set SOLOIST_STORE_PASSWORD or --store-password-file, and --store-username for an ACL user",
	KindNoPerm:    "the ACL user lacks a permission: the rule that works is in docs/redis.md",
	KindWrongType: "a key with the locks' prefix holds something else: choose another --key-prefix, or delete it",
	KindNoScript:  "scripts are switched off: the user needs +eval and +evalsha",
	KindEviction:  "set maxmemory-policy to noeviction, or give the locks a server of their own; --store-check=warn goes on regardless",
	KindCluster:   "this is a Redis Cluster: use a plain server",
}

// prefixes maps the first word of a Redis error to its kind.
var prefixes = map[string]string{
	"LOADING": KindLoading, "READONLY": KindReadOnly, "MASTERDOWN": KindReadOnly,
	"OOM": KindMemory, "BUSY": KindBusy, "MISCONF": KindMisconf, "NOREPLICAS": KindMisconf,
	"NOAUTH": KindAuth, "WRONGPASS": KindAuth, "NOPERM": KindNoPerm,
	"WRONGTYPE": KindWrongType, "NOSCRIPT": KindNoScript,
	"MOVED": KindCluster, "ASK": KindCluster, "CLUSTERDOWN": KindCluster,
	"CROSSSLOT": KindCluster, "TRYAGAIN": KindCluster,
}

// failed wraps what go-redis returned for op. A script that says INVALID gave a verdict.
func failed(op string, err error) error {
	if err == nil {
		return nil
	}
	var wait *lease.WaitError
	if errors.As(err, &wait) {
		return err
	}
	if lease.IsVerdict(err) {
		return err
	}
	kind := kindOf(err)
	var reply redis.Error
	if kind == KindOther && errors.As(err, &reply) && strings.Contains(reply.Error(), "INVALID ") {
		return fmt.Errorf("%w: %w", lease.ErrInvalid, err)
	}
	return &Error{Op: op, Kind: kind, Err: err}
}

func kindOf(err error) string {
	var reply redis.Error
	if errors.As(err, &reply) {
		text := strings.TrimPrefix(reply.Error(), "ERR ")
		word, _, _ := strings.Cut(text, " ")
		if kind, ok := prefixes[strings.TrimPrefix(word, "-")]; ok {
			return kind
		}
		// Errors of redis.call inside a script carry their code in front only since 7.0.
		for word, kind := range prefixes {
			if strings.Contains(text, "-"+word+" ") {
				return kind
			}
		}
		switch {
		case strings.Contains(text, "can't run this command") || strings.Contains(text, "has no permissions"),
			strings.Contains(text, "No permissions"):
			return KindNoPerm
		case strings.HasPrefix(text, "unknown command") && strings.Contains(strings.ToLower(text), "eval"):
			return KindNoScript
		}
		return KindOther
	}
	var timeout net.Error
	switch {
	case errors.Is(err, errCredentials):
		return KindAuth
	case errors.Is(err, errReply):
		return KindProtocol
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded),
		errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, redis.ErrPoolTimeout):
		return KindTimeout
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, redis.ErrClosed):
		return KindClosed
	case isAny(err, syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ENETUNREACH, os.ErrNotExist):
		return KindRefused
	case isAny(err, syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNABORTED):
		return KindClosed
	}
	return KindOther
}

func isAny(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(t error) bool { return errors.Is(err, t) })
}
