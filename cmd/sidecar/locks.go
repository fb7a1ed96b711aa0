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
	return p.onStore(ctx, func(ctx context.Context, s store) error {
		l, ok := s.(lister)
		if !ok {
			return errNotThisStore
		}
		names, err := l.Locks(ctx)
		if err != nil {
			return err
		}
		slices.Sort(names)
		return p.show(ctx, s, names)
	})
}

// onStore does what an operator asks of the store, within the time that a request may take.
func (p program) onStore(ctx context.Context, do func(context.Context, store) error) int {
	s, err := p.openStore(slog.New(slog.DiscardHandler))
	if err != nil {
		return p.fail(err)
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(ctx, p.Request.Timeout)
	defer cancel()
	if err := do(ctx, s); err != nil {
		return p.fail(err)
	}
	return config.ExitOK
}

// show writes who holds locks.
func (p program) show(ctx context.Context, s store, names []string) error {
	lines := []slotStatus{}
	for _, name := range names {
		info, err := s.Inspect(ctx, name)
		if err != nil {
			return err
		}
		lines = append(lines, statusOf(info)...)
	}
	if p.Output == "json" {
		enc := json.NewEncoder(p.stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(lines)
	}
	return writeTable(p.stdout, lines, time.Now())
}

// unlock ends what is held of locks.
func unlock(ctx context.Context, p program) int {
	return p.onStore(ctx, func(ctx context.Context, s store) error {
		r, ok := s.(revoker)
		if !ok {
			return errNotThisStore
		}
		for _, name := range p.locks() {
			n, err := r.Revoke(ctx, name, p.Unlock.Force)
			if err != nil {
				return err
			}
			what := fmt.Sprintf("%d revoked; others may have it when it is released, or its lease has run out", n)
			switch {
			case n == 0:
				what = "nobody holds it"
			case p.Unlock.Force:
				what = fmt.Sprintf("%d deleted; others may have it now", n)
			}
			fmt.Fprintf(p.stdout, "%s: %s\n", name, what)
		}
		return nil
	})
}

// locks returns the names of --lock.
func (p program) locks() []string {
	var names []string
	for _, e := range p.Elections {
		names = append(names, e.Lock)
	}
	return names
}
