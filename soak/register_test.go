package soak

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// What the soak looks for it finds.
func TestTheChecksFail(t *testing.T) {
	lost := []porcupine.Operation{
		{ClientId: 0, Call: 0, Return: 2, Output: increment{0, true}},
		{ClientId: 1, Call: 1, Return: 3, Output: increment{0, true}},
	}
	if porcupine.CheckOperations(counter, lost) {
		t.Error("a lost update passes")
	}
	lost[1].Output = increment{1, true}
	if !porcupine.CheckOperations(counter, lost) {
		t.Error("one after the other does not pass")
	}
	at := time.Now()
	holds := []hold{{0, 1, at, at.Add(2)}, {1, 2, at.Add(1), at.Add(3)}}
	if _, _, ok := overlap(holds); !ok {
		t.Error("two holders at a time pass")
	}
	holds[1].from = at.Add(2)
	if _, _, ok := overlap(holds); ok {
		t.Error("one after the other is said to overlap")
	}
}

// The fence is what a read takes along: a write of an earlier holder is refused from then on.
func TestReadingTakesTheFenceAlong(t *testing.T) {
	var r register
	if v, ok := r.read(1); !ok || v != 0 {
		t.Fatal(v, ok)
	}
	if _, ok := r.read(2); !ok {
		t.Fatal("a higher fence is refused")
	}
	if r.write(1, 1) {
		t.Error("the earlier holder writes what the later has read before")
	}
	if !r.write(1, 2) || r.value != 1 {
		t.Error("the later holder does not write")
	}
}
