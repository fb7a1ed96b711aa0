package kube

import (
	"fmt"
	"os"
	"strings"
	"sync"
)

// maxMessage is how many bytes of a termination message the kubelet passes on.
const maxMessage = 4096

// TerminationMessage is the file whose content Kubernetes shows as the message of the
// container's end. It names the terms that the container has had: what ends with that
// message is the process that had them, and no other (a pod's UID and addresses are the
// same for every restart of its containers). It is safe for concurrent use.
type TerminationMessage struct {
	path string
	mu   sync.Mutex
	said string
}

// NewTerminationMessage returns the file at path; nil if it does not exist or can't be
// written, which is so outside Kubernetes.
func NewTerminationMessage(path string) *TerminationMessage {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil || f.Close() != nil {
		return nil
	}
	return &TerminationMessage{path: path}
}

// Add notes a term. It is to be called before anybody is told of the term; when it fails,
// or the process dies before, there is no proof of the term's end, and its lease is
// waited for.
func (m *TerminationMessage) Add(lock string, fence uint64) error {
	return m.add(term(lock, fence))
}

// Lost notes why the process is about to end itself: for people, who may look for it when
// no API server could be told.
func (m *TerminationMessage) Lost(lock, reason string) error {
	return m.add(fmt.Sprintf("lost %q: %s\n", lock, reason))
}

func (m *TerminationMessage) add(line string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.said += line
	for len(m.said) > maxMessage { // the oldest term
		_, m.said, _ = strings.Cut(m.said, "\n")
	}
	return os.WriteFile(m.path, []byte(m.said), 0)
}

// term is a line of its own: half of one names no other term.
func term(lock string, fence uint64) string {
	return fmt.Sprintf("led %q with fence %d\n", lock, fence)
}
