package redislease

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/soloist-dev/soloist/internal/lease"
)

// Kinds of a [lease.StoreError] that only this store has.
const (
	KindLoading   = "loading"   // LOADING
	KindReadOnly  = "readonly"  // READONLY, MASTERDOWN: a replica
	KindMemory    = "oom"       // OOM
	KindBusy      = "busy"      // BUSY: a script of somebody's runs for too long
	KindMisconf   = "misconf"   // MISCONF, NOREPLICAS: writes are stopped
	KindAuth      = "auth"      // NOAUTH, WRONGPASS
	KindNoPerm    = "noperm"    // NOPERM
	KindWrongType = "wrongtype" // a key of ours holds something else
	KindNoScript  = "noscript"  // scripts are not to be had here
	KindCluster   = "cluster"   // MOVED, CROSSSLOT: a cluster that was not expected
	KindFailover  = "failover"  // CLUSTERDOWN, TRYAGAIN: a cluster that is changing
	KindEviction  = "eviction"  // the server may throw locks away
)

// newError returns err as what the store said to op.
func newError(op, kind string, err error) error {
	return &lease.StoreError{
		Store: "redis", Op: op, Kind: kind, Advice: advice[kind], Err: err, Permanent: permanent[kind],
	}
}

// permanent are the kinds that trying again does not help.
var permanent = map[string]bool{
	KindAuth: true, KindNoPerm: true, KindWrongType: true, KindNoScript: true, KindEviction: true, KindCluster: true,
}

// advice says what to do about errors that do not go away by themselves.
var advice = map[string]string{
	KindReadOnly:  "this is a replica: point --store at the primary (in a failover this passes by itself)",
	KindMemory:    "the server is out of memory: raise maxmemory or give the locks a server of their own",
	KindMisconf:   "the server refuses writes: see its log for why it can't save or reach its replicas",
	KindAuth:      "set SOLOIST_STORE_PASSWORD or --store-password-file, and --store-username for an ACL user",
	KindNoPerm:    "the ACL user lacks a permission: the rule that works is in docs/redis.md",
	KindWrongType: "a key with the locks' prefix holds something else: choose another --key-prefix, or delete it",
	KindNoScript:  "scripts are switched off: the user needs +eval and +evalsha",
	KindEviction:  "set maxmemory-policy to noeviction, or give the locks a server of their own; --store-check=warn goes on regardless",
	KindCluster:   "this is a Redis Cluster: its URL begins with redis+cluster://",
}

// prefixes maps the first word of a Redis error to its kind.
var prefixes = map[string]string{
	"LOADING": KindLoading, "READONLY": KindReadOnly, "MASTERDOWN": KindReadOnly,
	"OOM": KindMemory, "BUSY": KindBusy, "MISCONF": KindMisconf, "NOREPLICAS": KindMisconf,
	"NOAUTH": KindAuth, "WRONGPASS": KindAuth, "NOPERM": KindNoPerm,
	"WRONGTYPE": KindWrongType, "NOSCRIPT": KindNoScript,
	"MOVED": KindCluster, "ASK": KindCluster, "CROSSSLOT": KindCluster,
	"CLUSTERDOWN": KindFailover, "TRYAGAIN": KindFailover,
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
	if kind == lease.KindOther && errors.As(err, &reply) && strings.Contains(reply.Error(), "INVALID ") {
		return fmt.Errorf("%w: %w", lease.ErrInvalid, err)
	}
	return newError(op, kind, err)
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
		return lease.KindOther
	}
	switch {
	case errors.Is(err, errCredentials):
		return KindAuth
	case errors.Is(err, errReply):
		return lease.KindProtocol
	case errors.Is(err, redis.ErrPoolTimeout):
		return lease.KindTimeout
	case errors.Is(err, redis.ErrClosed):
		return lease.KindClosed
	}
	return lease.NetworkKind(err)
}
