package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"time"

	"github.com/soloist-dev/soloist/bench/internal/rig"
)

// sidecarLimit is how long a sidecar may take for anything.
const sidecarLimit = time.Minute

// A sidecar is a process of the real binary.
type sidecar struct {
	cmd  *exec.Cmd
	port int
	log  *bytes.Buffer // what it wrote; read it only after kill
}

// startSidecar starts one election. It does not wait for anything.
func (b *bench) startSidecar(ctx context.Context, server *rig.Redis, lock, name string) (*sidecar, error) {
	return b.launch(ctx, server.Addr, "--lock="+lock, "--name="+name)
}

// launch starts a sidecar on the store at addr. It does not wait for anything.
func (b *bench) launch(ctx context.Context, addr string, flags ...string) (*sidecar, error) {
	binary, err := b.binary(ctx)
	if err != nil {
		return nil, err
	}
	s := &sidecar{log: &bytes.Buffer{}}
	if s.port, err = rig.FreePort(); err != nil {
		return nil, err
	}
	probes, err := rig.FreePort()
	if err != nil {
		return nil, err
	}
	s.cmd = exec.Command(binary, append(flags, "--store=redis://"+addr, "--delayed-restart=off",
		fmt.Sprintf("--http-address=127.0.0.1:%d", s.port), fmt.Sprintf("--probe-address=127.0.0.1:%d", probes))...)
	s.cmd.Env = []string{} // no setting comes from here
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start sidecar: %w", err)
	}
	return s, nil
}

func (s *sidecar) url(path string) string { return fmt.Sprintf("http://127.0.0.1:%d%s", s.port, path) }

func (s *sidecar) pid() int { return s.cmd.Process.Pid }

// kill ends the process and waits until it is gone.
func (s *sidecar) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// until asks /leader, without a pause between failures to connect, until it answers
// with the status.
func (s *sidecar) until(ctx context.Context, status int) error {
	client := &http.Client{Timeout: time.Second}
	defer client.CloseIdleConnections()
	for deadline := time.Now().Add(sidecarLimit); time.Now().Before(deadline); {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url("/leader"), nil)
		if err != nil {
			return err
		}
		if resp, err := client.Do(req); err == nil {
			resp.Body.Close()
			if resp.StatusCode == status {
				return nil
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		time.Sleep(200 * time.Microsecond)
	}
	s.kill()
	return fmt.Errorf("sidecar did not answer %d within %v; it wrote:\n%s", status, sidecarLimit, s.log)
}

func (s *sidecar) untilLeading(ctx context.Context) error { return s.until(ctx, http.StatusOK) }
func (s *sidecar) untilStandby(ctx context.Context) error {
	return s.until(ctx, http.StatusServiceUnavailable)
}

// resign hands the leadership over at once, and gets back in line at once: by default
// it would stay away until another has led.
func (s *sidecar) resign(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url("/resign"), strings.NewReader(`{"done":true,"hold_off":"1ms"}`))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("resign: %w", err)
	}
	resp.Body.Close()
	if resp.StatusCode >= 300 {
		return fmt.Errorf("resign: %s", resp.Status)
	}
	return nil
}

// leaderEvent is a change that an app hears of.
type leaderEvent struct {
	sidecar int
	at      time.Time
}

// listen sends the times at which the events stream of the sidecar begins to say
// leader, until ctx is done.
func (s *sidecar) listen(ctx context.Context, index int, events chan<- leaderEvent) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url("/events"), nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("events: %w", err)
	}
	go func() { // ends with ctx, which closes the body
		defer resp.Body.Close()
		led := false
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			name, ok := strings.CutPrefix(lines.Text(), "event:")
			if !ok {
				continue
			}
			leads := strings.TrimSpace(name) == "leader"
			if leads && !led {
				events <- leaderEvent{index, time.Now()}
			}
			led = leads
		}
	}()
	return nil
}
