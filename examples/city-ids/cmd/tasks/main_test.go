package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"testing"

	"github.com/soloist-dev/soloist/examples/city-ids/tasks"
)

func TestRunServesUntilDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out, w := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- run(ctx, []string{"--address", "127.0.0.1:0"}, w, io.Discard) }()

	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var listening struct{ Address string }
	if err := json.Unmarshal(line, &listening); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	c := tasks.Client{URL: "http://" + listening.Address}
	if err := c.Add(t.Context(), tasks.Task{CityID: 1, Fence: 1, Worker: "a"}); err != nil {
		t.Errorf("Add = %v", err)
	}

	cancel()
	if err := <-done; err != nil {
		t.Errorf("run = %v, want it to end without an error", err)
	}
}

func TestRunRefusesWhatItDoesNotKnow(t *testing.T) {
	for _, args := range [][]string{{"--nosuch"}, {"--address", "nowhere:port"}} {
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("run(%q): no error", args)
		}
	}
}
