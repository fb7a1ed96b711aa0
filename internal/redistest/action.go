package redistest

import (
	"crypto/sha1" //nolint:gosec // Redis names scripts by their SHA-1.
	"encoding/hex"
	"slices"
	"strings"
	"time"
)

// A Command is a request as the proxy has read it, or, for OnPush, a message that
// nobody asked for.
type Command struct {
	Conn int      // number of the client's connection, in the order of acceptance, from 1
	Args []string // at least one: the command's name, or "message" and the like
}

// Name returns the first argument in capitals.
func (c Command) Name() string { return strings.ToUpper(c.Args[0]) }

// A Matcher chooses commands. The proxy never runs two at once, so that a Matcher
// may count; it must neither block nor call the proxy.
type Matcher func(Command) bool

// Name matches commands by name.
func Name(names ...string) Matcher {
	return func(c Command) bool {
		return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, c.Args[0]) })
	}
}

// Script matches EVAL and EVALSHA of the script with this source. A client's first
// EVALSHA may find that the server does not know the script, and then no request
// that matters was delayed or doubled: run it once before. (Actions on the answer
// let a NOSCRIPT pass, and wait for the real one.)
func Script(source string) Matcher {
	sum := sha1.Sum([]byte(source)) //nolint:gosec // as above
	sha := hex.EncodeToString(sum[:])
	return ScriptWhere(func(args []string) bool {
		return args[0] == source || strings.EqualFold(args[0], sha)
	})
}

// ScriptWhere matches EVAL and EVALSHA by their arguments: the source or SHA-1, the
// number of keys, the keys, and the rest.
func ScriptWhere(match func(args []string) bool) Matcher {
	isScript := Name("EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO")
	return func(c Command) bool { return isScript(c) && len(c.Args) > 1 && match(c.Args[1:]) }
}

// Arg matches commands that have this argument.
func Arg(arg string) Matcher {
	return func(c Command) bool { return slices.Contains(c.Args[1:], arg) }
}

// All matches what each of several matchers matches.
func All(matchers ...Matcher) Matcher {
	return func(c Command) bool {
		for _, m := range matchers {
			if !m(c) {
				return false
			}
		}
		return true
	}
}

// An Action is what a rule does to a command. Commands on the same connection
// stay in order: what comes behind one that is delayed waits too.
type Action struct {
	kind actionKind
	d    time.Duration
	ch   <-chan struct{} // to wait for, instead of d
	text string
}

type actionKind string

const (
	pass        actionKind = "Pass"
	loseRequest actionKind = "LoseRequest"
	cutRequest  actionKind = "CutRequest"
	replyError  actionKind = "ReplyError"
	hold        actionKind = "Delay/HoldUntil"
	duplicate   actionKind = "Duplicate"
	loseReply   actionKind = "LoseReply"
	cutReply    actionKind = "CutReply"
	holdReply   actionKind = "DelayReply/HoldReplyUntil"
	drop        actionKind = "Drop"
)

// onlyFor tells that an action is possible with On alone, or with OnPush alone.
func (k actionKind) onlyFor() string {
	switch k {
	case loseRequest, cutRequest, replyError, hold, duplicate:
		return "On"
	case drop:
		return "OnPush"
	}
	return ""
}

// Pass changes nothing. It fires when the answer, or the message, is passed on: a
// rule with it is a way to wait.
func Pass() Action { return Action{kind: pass} }

// LoseRequest swallows the request: the server never sees it. The connection stays
// open, and all that the client sends on it from then on is swallowed too.
func LoseRequest() Action { return Action{kind: loseRequest} }

// CutRequest swallows the request and closes the connection.
func CutRequest() Action { return Action{kind: cutRequest} }

// ReplyError answers with an error, as in ReplyError("LOADING Redis is loading").
// The server never sees the request.
func ReplyError(text string) Action {
	return Action{kind: replyError, text: "-" + strings.TrimPrefix(text, "-") + "\r\n"}
}

// Delay sends the request on after d. It fires before. A client that leaves in the
// meantime does not stop it.
func Delay(d time.Duration) Action { return Action{kind: hold, d: d} }

// HoldUntil is Delay until ch is closed, which may be another rule's Fired or Done.
func HoldUntil(ch <-chan struct{}) Action { return Action{kind: hold, ch: ch} }

// Duplicate sends the request on at once, and after d a second time, on another
// connection with the same database, where the answer is swallowed. It fires
// when the first was sent, and is done when the second was answered; the client's
// leaving does not stop it.
func Duplicate(d time.Duration) Action { return Action{kind: duplicate, d: d} }

// LoseReply lets the server execute the request, and swallows its whole answer. The
// connection stays open, and all that the server sends on it from then on is
// swallowed too.
func LoseReply() Action { return Action{kind: loseReply} }

// CutReply lets the server execute the request, swallows its whole answer, and
// closes the connection.
func CutReply() Action { return Action{kind: cutReply} }

// DelayReply passes the answer on after d. It fires before, when the server has
// executed the request.
func DelayReply(d time.Duration) Action { return Action{kind: holdReply, d: d} }

// HoldReplyUntil is DelayReply until ch is closed.
func HoldReplyUntil(ch <-chan struct{}) Action { return Action{kind: holdReply, ch: ch} }

// Drop swallows one message, for OnPush. The connection goes on.
func Drop() Action { return Action{kind: drop} }

// wait blocks for the action's time, and returns false if stop was closed first.
func (a Action) wait(stop <-chan struct{}) bool {
	if a.ch != nil {
		select {
		case <-a.ch:
			return true
		case <-stop:
			return false
		}
	}
	timer := time.NewTimer(a.d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-stop:
		return false
	}
}
