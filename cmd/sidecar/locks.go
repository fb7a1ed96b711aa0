package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/soloist-dev/soloist/internal/config"
)

// A lister is a store that can say which locks there are.
type lister interface {
	Locks(ctx context.Context) ([]string, error)
}

// A revoker is a store whose leases an operator can end.
type revoker interface {
	Revoke(ctx context.Context, lock string, force bool) (int, error)
}

var errNotThisStore = errors.New("this store can't do that; for Lease objects use kubectl")

// listLocks lists all locks in the store.
func listLocks(ctx context.Context, p program) int {
	store, err := p.openStore(slog.New(slog.DiscardHandler))
	if err != nil {
		return p.fail(err)
	}
	defer store.Close()
	ctx, cancel := context.WithTimeout(ctx, p.Request.Timeout)
	defer cancel()
	l, ok := store.(lister)
	if !ok {
		return p.fail(errNotThisStore)
	}
	names, err := l.Locks(ctx)
	if err != nil {
		return p.fail(err)
	}
	slices.Sort(names)
	lines := []slotStatus{}
	for _, name := range names {
		info, err := store.Inspect(ctx, name)
		if err != nil {
			return p.fail(err)
		}
		lines = append(lines, statusOf(info)...)
	}
	return p.show(lines)
}

// show writes what status and locks have found.
func (p program) show(lines []slotStatus) int {
	var err error
	if p.Output == "json" {
		enc := json.NewEncoder(p.stdout)
		enc.SetIndent("", "  ")
		err = enc.Encode(lines)
	} else {
		err = writeTable(p.stdout, lines, time.Now())
	}
	if err != nil {
		return p.fail(err)
	}
	return config.ExitOK
}

// unlock ends what is held of locks.
func unlock(ctx context.Context, p program) int {
	store, err := p.openStore(slog.New(slog.DiscardHandler))
	if err != nil {
		return p.fail(err)
	}
	defer store.Close()
	ctx, cancel := context.WithTimeout(ctx, p.Request.Timeout)
	defer cancel()
	r, ok := store.(revoker)
	if !ok {
		return p.fail(errNotThisStore)
	}
	for _, e := range p.Elections {
		n, err := r.Revoke(ctx, e.Lock, p.Unlock.Force)
		switch {
		case err != nil:
			return p.fail(err)
		case n == 0:
			fmt.Fprintf(p.stdout, "%s: nobody holds it\n", e.Lock)
		case p.Unlock.Force:
			fmt.Fprintf(p.stdout, "%s: %d deleted; others may have it now\n", e.Lock, n)
		default:
			fmt.Fprintf(p.stdout, "%s: %d revoked; others may have it when it is released, or its lease has run out\n", e.Lock, n)
		}
	}
	return config.ExitOK
}
