package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A platform is a running cluster and how to reach what kubectl does not.
type platform struct {
	name       string
	kubeconfig string
	kubectl    string
	onNode     []string // the beginning of a command line that runs the rest on the only node; nil if there is no way
	load       func(ctx context.Context, tar string) error
	logs       func(ctx context.Context, dir string) error // of the cluster itself; nil if there is no way
	stop       func(ctx context.Context) error
	lock       *os.File // held until the process ends
}

func (p *platform) env() []string { return append(os.Environ(), "KUBECONFIG="+p.kubeconfig) }

// start gives the cluster that E2E_KUBECONFIG names; else a new one of kind, if there are docker and kind; else
// a new one of e2e/node, for which this must be root and have built it.
func start(ctx context.Context) (*platform, error) {
	home, err := home()
	if err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(home, "test.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return nil, fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	var p *platform
	switch {
	case os.Getenv("E2E_KUBECONFIG") != "":
		p = given(os.Getenv("E2E_KUBECONFIG"))
	case have(ctx, "kind", "version") && have(ctx, "docker", "info"):
		p, err = kind(ctx, home)
	default:
		p, err = node(ctx)
	}
	if err != nil {
		return nil, err
	}
	p.kubectl = tool("kubectl")
	p.lock = lock
	return p, nil
}

// given is a cluster that somebody else started. E2E_LOAD and E2E_NODE say how to do what only its owner knows.
func given(kubeconfig string) *platform {
	return &platform{
		name:       "the one of " + kubeconfig,
		kubeconfig: kubeconfig,
		onNode:     strings.Fields(os.Getenv("E2E_NODE")),
		load: func(ctx context.Context, tar string) error {
			cmd := strings.Fields(os.Getenv("E2E_LOAD"))
			if len(cmd) == 0 {
				return errors.New("with E2E_KUBECONFIG, E2E_LOAD must be a command that loads an image, as in \"minikube image load\"")
			}
			_, err := run(ctx, nil, "", cmd[0], append(cmd[1:], tar)...)
			return err
		},
		stop: func(context.Context) error { return nil },
	}
}

func kind(ctx context.Context, home string) (*platform, error) {
	const name = "soloist-e2e"
	p := &platform{
		name:       "kind",
		kubeconfig: filepath.Join(home, "kind.kubeconfig"),
		onNode:     []string{"docker", "exec", "-i", name + "-control-plane"},
		load: func(ctx context.Context, tar string) error {
			_, err := run(ctx, nil, "", "kind", "load", "image-archive", tar, "--name", name)
			return err
		},
		logs: func(ctx context.Context, dir string) error {
			_, err := run(ctx, nil, "", "kind", "export", "logs", dir, "--name", name)
			return err
		},
	}
	p.stop = func(ctx context.Context) error {
		_, err := run(ctx, nil, "", "kind", "delete", "cluster", "--name", name, "--kubeconfig", p.kubeconfig)
		return err
	}
	if keep() {
		clusters, err := run(ctx, nil, "", "kind", "get", "clusters")
		if err == nil && slices.Contains(strings.Fields(clusters), name) {
			_, err := run(ctx, nil, "", "kind", "export", "kubeconfig", "--name", name, "--kubeconfig", p.kubeconfig)
			return p, err
		}
	} else if err := p.stop(ctx); err != nil { // one that an interrupted run left
		return nil, err
	}
	_, err := run(ctx, nil, "", "kind", "create", "cluster", "--name", name, "--kubeconfig", p.kubeconfig, "--wait", "120s")
	return p, err
}

func node(ctx context.Context) (*platform, error) {
	root, err := root()
	if err != nil {
		return nil, err
	}
	script := filepath.Join(root, "node", "node")
	p := &platform{
		name:   "e2e/node",
		onNode: []string{script, "in"},
		load: func(ctx context.Context, tar string) error {
			_, err := run(ctx, nil, "", script, "load", tar)
			return err
		},
		logs: func(_ context.Context, dir string) error {
			home, err := home()
			if err != nil {
				return err
			}
			return os.CopyFS(filepath.Join(dir, "node"), os.DirFS(filepath.Join(home, "logs")))
		},
		stop: func(ctx context.Context) error {
			_, err := run(ctx, nil, "", script, "down")
			return err
		},
	}
	if !keep() {
		if err := p.stop(ctx); err != nil { // one that an interrupted run left
			return nil, err
		}
	}
	out, err := run(ctx, nil, "", script, "up")
	p.kubeconfig = strings.TrimSpace(out)
	return p, err
}

func keep() bool { return os.Getenv("E2E_KEEP") == "1" }

// home is where e2e/node/node keeps everything.
func home() (string, error) {
	dir := os.Getenv("SOLOIST_E2E_HOME")
	if dir == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(user, ".cache", "soloist-e2e")
	}
	return dir, os.MkdirAll(dir, 0o755)
}

// root is the directory e2e, from any package below it.
func root() (string, error) {
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "node", "node")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no directory above this one has node/node")
		}
	}
	return "", err
}

// tool prefers what e2e/node/node has built: its version is known.
func tool(name string) string {
	if home, err := home(); err == nil {
		if path, err := exec.LookPath(filepath.Join(home, "bin", name)); err == nil {
			return path
		}
	}
	return name
}

func have(ctx context.Context, name string, args ...string) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err := run(ctx, nil, "", name, args...)
	return err == nil
}

// run returns the command's standard output. Its error has the command line and the standard error. A nil env
// is this process's own.
func run(ctx context.Context, env []string, stdin, name string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = env
	if stdin != "" {
		cmd.Stdin = strings.NewReader(stdin)
	}
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = 5 * time.Second // for what it leaves behind with our pipes open
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, stderr.Bytes())
	}
	return stdout.String(), nil
}
