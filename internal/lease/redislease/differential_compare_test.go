package redislease

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/soloist-dev/soloist/internal/lease"
)

// roughly allows for a slow machine; the leases of the test differ by 5 minutes.
func roughly(a, b time.Duration) bool {
	return (a-b).Abs() < 2*time.Minute && (a < 0) == (b < 0)
}

func (tw *twins) sameErrors(op string, redis, memory error) {
	for _, verdict := range []error{
		lease.ErrHeld, lease.ErrLost, lease.ErrBurned, lease.ErrKind, lease.ErrFence, lease.ErrInvalid,
	} {
		if errors.Is(redis, verdict) && errors.Is(memory, verdict) {
			return
		}
	}
	if redis != nil || memory != nil {
		tw.Errorf("%s: %v, Memory: %v", op, redis, memory)
	}
}

// sameFence pairs two fences. The order of the pairs is checked in the end.
func (tw *twins) sameFence(what string, redis, memory uint64) {
	if seen, ok := tw.fences[redis]; ok && seen != memory {
		tw.Errorf("%s: fence %d stood for Memory's %d, now for %d", what, redis, seen, memory)
	}
	tw.fences[redis] = memory
	tw.top[0], tw.top[1] = max(tw.top[0], redis), max(tw.top[1], memory)
}

func (tw *twins) order() {
	var memory []uint64
	for _, fence := range slices.Sorted(maps.Keys(tw.fences)) {
		memory = append(memory, tw.fences[fence])
	}
	if !slices.IsSorted(memory) || len(slices.Compact(slices.Clone(memory))) != len(memory) {
		tw.Errorf("in the order of Redis's, Memory's fences are %v", memory)
	}
}

func (tw *twins) sameHolder(what string, redis, memory lease.Holder) {
	if redis.Identity != memory.Identity || redis.Since.Sub(memory.Since).Abs() > time.Minute {
		tw.Errorf("%s: holder %+v, Memory: %+v", what, redis, memory)
	}
}

func (tw *twins) sameRun(what string, redis, memory *lease.Run) {
	if (redis == nil) != (memory == nil) {
		tw.Errorf("%s: %+v, Memory: %+v", what, redis, memory)
	}
	if redis == nil || memory == nil {
		return
	}
	tw.sameFence(what, redis.Fence, memory.Fence)
	if redis.Name != memory.Name || redis.By != memory.By || redis.At.Sub(memory.At).Abs() > time.Minute ||
		!roughly(redis.Took, memory.Took) {
		tw.Errorf("%s: %+v, Memory: %+v", what, redis, memory)
	}
}

func (tw *twins) sameHeld(what string, redis, memory lease.Held) {
	tw.sameHolder(what, redis.Holder, memory.Holder)
	tw.sameFence(what, redis.Fence, memory.Fence)
	if redis.Rank != memory.Rank || redis.Waiting != memory.Waiting || redis.Turn != memory.Turn ||
		!roughly(redis.Left, memory.Left) {
		tw.Errorf("%s: %+v, Memory: %+v", what, redis, memory)
	}
}

func (tw *twins) inspect() {
	lock, _ := tw.lockAndSlots()
	x, err := tw.store.Inspect(tw.ctx, lock)
	y, err2 := tw.mem.Inspect(tw.ctx, lock)
	tw.logf("inspect %s: %+v %v | %+v %v", lock, x, err, y, err2)
	tw.sameErrors("inspect", err, err2)
	tw.sameFence("inspect", x.Fence, y.Fence)
	tw.sameRun("last run", x.LastRun, y.LastRun)
	if x.Lock != y.Lock || x.Slots != y.Slots || x.Waiting != y.Waiting || len(x.Holders) != len(y.Holders) {
		tw.Errorf("inspect: %+v, Memory: %+v", x, y)
		return
	}
	for i, h := range x.Holders {
		tw.sameFence("holder", h.Fence, y.Holders[i].Fence)
		tw.sameHolder("inspect", h.Holder, y.Holders[i].Holder)
		if h.Slot != y.Holders[i].Slot || h.Resting != y.Holders[i].Resting || !roughly(h.Left, y.Holders[i].Left) {
			tw.Errorf("inspect: %+v, Memory: %+v", x, y)
		}
	}
}

// subscribe makes an instance listen, or not.
func (tw *twins) subscribe(instance string, on bool) {
	tw.logf("subscribe %s %v", instance, on)
	channel := tw.store.channels("") + instance
	var err error
	if tw.listen[instance] = on; on {
		tw.procs[instance].Subscribe()
		err = tw.sub.Subscribe(tw.ctx, channel)
	} else {
		tw.procs[instance].Disconnect()
		err = tw.sub.Unsubscribe(tw.ctx, channel)
	}
	if err != nil {
		tw.Fatal(err)
	}
	tw.heard() // and so wait for the confirmation
}

// heard returns the messages that Redis has published so far.
func (tw *twins) heard() []message {
	if err := tw.sub.Ping(tw.ctx); err != nil {
		tw.Fatal(err)
	}
	var out []message
	for {
		msg, err := tw.sub.ReceiveTimeout(tw.ctx, time.Minute)
		if err != nil {
			tw.Fatal(err)
		}
		switch msg := msg.(type) {
		case *redis.Pong:
			return out
		case *redis.Message:
			m, err := parseMessage(msg.Payload)
			if err != nil {
				tw.Errorf("message %q: %v", msg.Payload, err)
			}
			if instance, _, _ := strings.Cut(m.member, "#"); msg.Channel != tw.store.channels("")+instance {
				tw.Errorf("message %q on channel %s", msg.Payload, msg.Channel)
			}
			out = append(out, m)
		}
	}
}

// messages compares what was published in the last operation.
func (tw *twins) messages() {
	heard, told := tw.heard(), tw.told
	tw.told = nil
	if len(heard) != len(told) {
		tw.Errorf("messages %+v, Memory: %+v", heard, told)
		return
	}
	for i, m := range heard {
		if m.member != told[i].Waiter || m.lock != told[i].Lock || m.now != told[i].Go {
			tw.Errorf("messages %+v, Memory: %+v", heard, told)
			return
		}
		tw.sameHeld("message", m.held, told[i].Held)
	}
}

// dump compares what is kept of a lock.
func (tw *twins) dump(lock string) {
	want := tw.mem.State(lock)
	v := tw.srv.Must("HMGET", tw.store.key(lock, "fn"), "f", "x", "k", "n").([]any)
	text := func(v any) string { s, _ := v.(string); return s }
	number := func(v any) uint64 { n, _ := strconv.ParseUint(text(v), 10, 64); return n }

	tw.sameFence("dump", number(v[0]), want.Fence)
	if text(v[1]) != want.Burned {
		tw.Errorf("%s: burned %q, in Memory %q", lock, v[1], want.Burned)
	}
	if text(v[2]) != want.Kind || int(number(v[3])) != want.Slots {
		tw.Errorf("%s: kind %q, %q slots; Memory: %q, %d", lock, v[2], v[3], want.Kind, want.Slots)
	}
	var line []string
	for _, member := range tw.srv.Must("ZRANGE", tw.store.key(lock, "q"), 0, -1).([]any) {
		line = append(line, text(member))
	}
	if !slices.Equal(line, want.Line) {
		tw.Errorf("%s: line %v, Memory: %v", lock, line, want.Line)
	}
	for _, key := range []string{"lk", "lk:0", "lk:1", "lk:2", "lk:3", "lk:4"} {
		value := text(tw.srv.Must("GET", tw.store.key(lock, key)))
		pttl := tw.srv.Must("PTTL", tw.store.key(lock, key)).(int64)
		state, ok := want.Leases[key]
		if ok != (value != "") {
			tw.Errorf("%s %s: %q, Memory: %+v", lock, key, value, state)
			continue
		}
		if !ok {
			continue
		}
		if !roughly(millis(pttl), state.Left) {
			tw.Errorf("%s %s: %d ms left, Memory: %v", lock, key, pttl, state.Left)
		}
		if member, kept := strings.CutPrefix(value, "~"); kept || state.KeptFor != "" {
			if member != state.KeptFor {
				tw.Errorf("%s %s: kept for %q, Memory: %q", lock, key, value, state.KeptFor)
			}
			continue
		}
		token, public, _ := strings.Cut(value, " ")
		fence, holder := parsePublic(public)
		if (token == "=") != state.Resting || token != "=" && token != string(state.Token) {
			tw.Errorf("%s %s: held by another token than in Memory", lock, key)
		}
		tw.sameFence("dump", fence, state.Fence)
		tw.sameHolder("dump", holder, state.Holder)
	}
}
