package redistest

import (
	"fmt"
	"strings"
)

// An exchange is a request and its answer, or a message that nobody asked for, and
// the rule that applies to it. One goroutine at a time uses it.
type exchange struct {
	cmd    Command
	rule   *Rule  // nil if there is none
	canned bool   // the proxy answers
	reply  []byte // the bytes of the answer so far
	seen   int    // confirmations so far, of a subscription
	open   bool   // fired and not done
}

func (x *exchange) action() Action {
	if x.rule == nil {
		return Action{}
	}
	return x.rule.action
}

// fire tells that the rule has struck.
func (x *exchange) fire() {
	x.open = true
	x.rule.count(1, 0)
}

// finish tells that what the rule did is over, if it has struck.
func (x *exchange) finish() {
	if x.open {
		x.open = false
		x.rule.count(0, 1)
	}
}

// strike is fire and finish in one.
func (x *exchange) strike() { x.rule.count(1, 1) }

// giveBack undoes the choice of an action on the answer, which is not the right one.
func (x *exchange) giveBack() {
	switch x.action().kind {
	case pass, loseReply, cutReply, holdReply:
		x.rule.use(-1)
		x.rule = nil
	}
}

// A session is what the proxy must know of a connection to tell answers from
// messages that nobody asked for. Only the goroutine that reads answers uses it.
type session struct {
	resp3 bool
	db    string                     // of SELECT
	subs  map[string]map[string]bool // by "", "P" or "S": what is subscribed to
}

// answers tells whether a message answers x, the oldest request without an answer,
// which is nil if there is none.
func (s *session) answers(m message, x *exchange) bool {
	switch {
	case x == nil || x.canned:
		return false
	case m.kind == '>':
		return confirms(m, x.cmd)
	case m.kind == '*' && !s.resp3 && s.subscribed():
		// With RESP2 such a connection has no requests whose answer looks so.
		switch word(m, 0) {
		case "message", "pmessage", "smessage":
			return false
		}
	}
	return true
}

func (s *session) subscribed() bool {
	return len(s.subs[""])+len(s.subs["P"])+len(s.subs["S"]) > 0
}

// add adds a message to the answer of x, and tells whether the answer is whole.
func (s *session) add(x *exchange, m message) bool {
	x.reply = append(x.reply, m.raw...)
	kind, leave, ok := subscription(x.cmd.Name())
	if !ok || !confirms(m, x.cmd) { // also an error in place of confirmations
		s.note(x.cmd, m)
		return true
	}
	// One confirmation for each channel; without channels, for each of the set, but
	// at least one.
	set := s.subs[kind]
	if leave {
		delete(set, word(m, 1))
	} else {
		set[word(m, 1)] = true
	}
	x.seen++
	if n := len(x.cmd.Args) - 1; n > 0 {
		return x.seen == n
	}
	return len(set) == 0
}

// note learns from an ordinary answer.
func (s *session) note(cmd Command, m message) {
	if _, failed := m.value.(Error); failed {
		return
	}
	switch cmd.Name() {
	case "HELLO":
		if len(cmd.Args) > 1 {
			s.resp3 = cmd.Args[1] == "3"
		}
	case "SELECT":
		s.db = cmd.Args[1]
	case "RESET":
		*s = newSession()
	}
}

func newSession() session {
	return session{db: "0", subs: map[string]map[string]bool{"": {}, "P": {}, "S": {}}}
}

// subscription takes the name of a command apart, if it is one like SUBSCRIBE.
func subscription(name string) (kind string, leave, ok bool) {
	if kind, ok = strings.CutSuffix(name, "UNSUBSCRIBE"); ok {
		return kind, true, ok
	}
	kind, ok = strings.CutSuffix(name, "SUBSCRIBE")
	return kind, false, ok
}

// confirms tells whether a message is a confirmation of a subscription command.
func confirms(m message, cmd Command) bool {
	_, _, ok := subscription(cmd.Name())
	return ok && strings.EqualFold(word(m, 0), cmd.Args[0])
}

// word returns an element of an aggregate, or "" if it is not a string.
func word(m message, i int) string {
	if list, ok := m.value.([]any); ok && i < len(list) {
		text, _ := list[i].(string)
		return text
	}
	return ""
}

// words returns the elements of an aggregate, and of those within it, as texts.
func words(v any) []string {
	list, ok := v.([]any)
	if !ok {
		return []string{fmt.Sprint(v)}
	}
	var texts []string
	for _, e := range list {
		texts = append(texts, words(e)...)
	}
	return texts
}
