package jobs

import (
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/lib/pq"
)

// recipes returns the code in this language that docs/locks.md has under "Fenced writes",
// cut at its empty lines.
func recipes(t *testing.T, language string) (parts []string) {
	t.Helper()
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "locks.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(doc), "\n## Fenced writes\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, block := range regexp.MustCompile("(?s)\n```"+language+"\n(.+?)\n```\n").FindAllStringSubmatch(section, -1) {
		parts = append(parts, strings.Split(block[1], "\n\n")...)
	}
	return parts
}

const inRecipes = 1795280209612400 // the fence there

// fenced is a recipe with another fence.
func fenced(recipe string, n int) string {
	return strings.ReplaceAll(recipe, strconv.Itoa(inRecipes), strconv.Itoa(inRecipes+n))
}

// needs returns the path of a program, which may not be in the PATH. CI has all of them.
func needs(t *testing.T, program, debian, where string) string {
	t.Helper()
	if path, err := exec.LookPath(program); err == nil {
		return path
	}
	if found, _ := filepath.Glob(filepath.Join(where, program)); len(found) > 0 {
		return found[len(found)-1]
	}
	fail := t.Skipf
	if os.Getenv("RECIPES") == "required" {
		fail = t.Fatalf
	}
	fail("no %s here to test a recipe with: install the package that Debian calls %s", program, debian)
	return ""
}

// A database is a server's directory, and who it runs as.
type database struct {
	dir string
	as  *syscall.Credential // nil: as the test does
}

// newDatabase makes a directory for a server: its socket's path may not be as long as that of
// t.TempDir, and a server that root starts runs as nobody, who could not get there.
func newDatabase(t *testing.T) *database {
	t.Helper()
	dir, err := os.MkdirTemp("", "recipes")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if os.Getuid() != 0 {
		return &database{dir: dir}
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(nobody.Uid)
	gid, _ := strconv.Atoi(nobody.Gid)
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	return &database{dir, &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}

func (d *database) command(args ...string) *exec.Cmd {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = d.dir, []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: d.as}
	return cmd
}

// serve runs a server until the test ends, or the process of the test, and with it the input.
func (d *database) serve(t *testing.T, args ...string) {
	t.Helper()
	cmd := d.command(append([]string{"sh", "-c", `"$@" & read end; kill $!; wait`, "sh"}, args...)...)
	var log output
	cmd.Stdout, cmd.Stderr = &log, &log
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		late := time.AfterFunc(patience, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		defer late.Stop()
		_ = stdin.Close()
		_ = cmd.Wait() // it was killed
		if t.Failed() {
			t.Logf("log of %s:\n%s", args[0], &log)
		}
	})
}

// connect waits until a database answers.
func connect(t *testing.T, driver, source string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for deadline := time.Now().Add(patience); ; {
		if err := db.PingContext(t.Context()); err == nil {
			return db
		} else if time.Now().After(deadline) {
			t.Fatalf("%s does not answer: %v", driver, err)
		}
		time.Sleep(10 * time.Millisecond) // real time: for another process
	}
}

func startPostgres(t *testing.T) *sql.DB {
	t.Helper()
	initdb := needs(t, "initdb", "postgresql-15", "/usr/lib/postgresql/*/bin")
	d := newDatabase(t)
	data := filepath.Join(d.dir, "data")
	out, err := d.command(initdb, "-D", data, "-U", "jobs", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync").CombinedOutput()
	if err != nil {
		t.Fatalf("initdb: %v: %s", err, out)
	}
	d.serve(t, filepath.Join(filepath.Dir(initdb), "postgres"), "-D", data, "-F", "-k", d.dir, "-p", "5432", "-c", "listen_addresses=")
	return connect(t, "postgres", "host="+d.dir+" port=5432 user=jobs dbname=postgres sslmode=disable")
}

// startMariaDB returns two ways to connect: as the driver does it of itself, and with
// CLIENT_FOUND_ROWS.
func startMariaDB(t *testing.T) (plain, foundRows *sql.DB) {
	t.Helper()
	server := needs(t, "mariadbd", "mariadb-server-core", "/usr/sbin")
	d := newDatabase(t)
	socket := filepath.Join(d.dir, "socket")
	d.serve(t, server, "--no-defaults", "--skip-grant-tables", "--skip-networking", "--datadir=.", "--tmpdir=.",
		"--innodb-log-file-size=8M", "--innodb-flush-log-at-trx-commit=0", "--socket="+socket)
	source := "root@unix(" + socket + ")/"
	if _, err := connect(t, "mysql", source).Exec("CREATE DATABASE jobs"); err != nil {
		t.Fatal(err)
	}
	return connect(t, "mysql", source+"jobs"), connect(t, "mysql", source+"jobs?clientFoundRows=true")
}

// An object in a store that speaks like S3.
type object struct {
	t   *testing.T
	url string
}

// run runs a script in a directory, for a holder, and returns its exit code and what it says.
func (o object) run(dir, script string, fence int, env ...string) (int, string) {
	cmd := exec.Command("sh", "-euc", script)
	cmd.Dir = dir
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "URL=" + o.url, fmt.Sprint("FENCE=", inRecipes+fence), fmt.Sprint("DATA=of ", fence),
	}, env...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		o.t.Error(err)
		return -1, ""
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

func (o object) read() (content, etag string) {
	resp, err := http.Get(o.url)
	if err != nil {
		o.t.Error(err)
		return "", ""
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return string(b), resp.Header.Get("ETag")
}
