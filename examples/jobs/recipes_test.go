package jobs

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/soloist-dev/soloist/internal/redistest"
)

// fencedWrites demands of a recipe what docs/locks.md promises. write tells whether the store
// took it; what read returns must be what want says after so many writes, of which a fence's
// was the last.
func fencedWrites(t *testing.T, write func(fence int) bool, read func() string, want func(last, writes int) string) {
	t.Helper()
	last, writes := 0, 0
	for _, step := range []struct {
		fence int
		taken bool
	}{{5, true}, {6, true}, {5, false}, {6, true}} {
		if got := write(step.fence); got != step.taken {
			t.Errorf("write of fence %d after that of %d: %t, want %t", step.fence, last, got, step.taken)
		}
		if step.taken {
			last, writes = step.fence, writes+1
		}
		if got, want := read(), want(last, writes); got != want {
			t.Errorf("after fence %d the data is %q, want %q", step.fence, got, want)
		}
	}

	const writers, times = 8, 3
	var taken [writers]atomic.Int32
	var all sync.WaitGroup
	for _, i := range rand.Perm(writers) {
		all.Go(func() {
			for range times {
				if !write(7 + i) {
					return
				}
				taken[i].Add(1)
			}
		})
	}
	all.Wait()
	for i := range taken {
		writes += int(taken[i].Load())
	}
	if n := taken[writers-1].Load(); n != times {
		t.Errorf("%d writes of the highest fence were taken, want all %d", n, times)
	}
	if got, want := read(), want(7+writers-1, writes); got != want {
		t.Errorf("after all the data is %q, want %q", got, want)
	}
}

// A stock is the table of the SQL recipes.
type stock struct {
	t                         *testing.T
	db                        *sql.DB
	write, claim, compareRead string
}

const before = 42 // of left_over: what one recipe compares with

func newStock(t *testing.T, db *sql.DB) *stock {
	t.Helper()
	parts := recipes(t, "sql")
	if len(parts) != 4 {
		t.Fatalf("%d recipes for SQL", len(parts))
	}
	s := &stock{t, db, parts[1], parts[2], parts[3]}
	s.rows(parts[0])
	s.rows("INSERT INTO stock (item, left_over) VALUES ('ticket', 42)")
	return s
}

// rows runs a statement and returns how many rows the client was told of.
func (s *stock) rows(statement string) int {
	res, err := s.db.Exec(statement)
	if err != nil {
		s.t.Errorf("%s: %v", statement, err)
		return -1
	}
	n, _ := res.RowsAffected()
	return int(n)
}

func (s *stock) leftOver() (n int) {
	if err := s.db.QueryRow("SELECT left_over FROM stock WHERE item = 'ticket'").Scan(&n); err != nil {
		s.t.Error(err)
	}
	return n
}

func (s *stock) fencedWrites() {
	s.t.Helper()
	want := func(last, writes int) string { return fmt.Sprintf("%d, fence %d", before-writes, inRecipes+last) }
	fencedWrites(s.t, func(fence int) bool { return s.rows(fenced(s.write, fence)) == 1 }, func() (is string) {
		q := "SELECT CONCAT(left_over, ', fence ', fence) FROM stock WHERE item = 'ticket'"
		if err := s.db.QueryRow(q).Scan(&is); err != nil {
			s.t.Error(err)
		}
		return is
	}, want)
}

// readThinkWrite lets a late write of fence 5 come between fence 6's reading and writing.
// claim does what the recipe of that name says.
func (s *stock) readThinkWrite(claim func(fence int) (leftOver int, ok bool)) {
	s.t.Helper()
	demand := func(what string, got, want int) {
		s.t.Helper()
		if got != want {
			s.t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	begin := func() { s.rows("UPDATE stock SET left_over = 42, fence = 1") }

	begin()
	demand("a read", s.leftOver(), before)
	demand("late write after it", s.rows(fenced(s.write, 5)), 1) // why these recipes are needed
	demand("write where another has written", s.rows(fenced(s.compareRead, 6)), 0)
	begin()
	demand("write where nobody has", s.rows(fenced(s.compareRead, 6)), 1)
	demand("left over", s.leftOver(), before-1)

	begin()
	for range 2 { // the second time it changes nothing
		if n, ok := claim(6); n != before || !ok {
			s.t.Errorf("fence 6 reads %d, %t", n, ok)
		}
	}
	demand("late write after a claim", s.rows(fenced(s.write, 5)), 0)
	if n, ok := claim(5); ok {
		s.t.Errorf("fence 5 reads %d after 6", n)
	}
	demand("write after a claim", s.rows(fenced(s.compareRead, 6)), 1)
	demand("left over", s.leftOver(), before-1)
}

func TestRecipePostgreSQL(t *testing.T) {
	t.Parallel()
	s := newStock(t, startPostgres(t))
	s.fencedWrites()
	s.readThinkWrite(func(fence int) (n int, ok bool) {
		err := s.db.QueryRow(fenced(s.claim, fence)).Scan(&n)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			t.Error(err)
		}
		return n, err == nil
	})
}

func TestRecipeMariaDB(t *testing.T) {
	t.Parallel()
	plain, foundRows := startMariaDB(t)
	s := newStock(t, foundRows)
	s.fencedWrites()
	claim, _, found := strings.Cut(s.claim, "\n RETURNING ")
	if !found {
		t.Errorf("no line to leave out in:\n%s", s.claim)
	}
	s.readThinkWrite(func(fence int) (n int, ok bool) {
		if ok = s.rows(fenced(claim, fence)) == 1; ok {
			n = s.leftOver()
		}
		return n, ok
	})
	if n := (&stock{t: t, db: plain}).rows(fenced(claim, 6)); n != 0 {
		t.Errorf("without CLIENT_FOUND_ROWS %d rows are counted where nothing changes", n)
	}

	var version string
	var major int
	if err := plain.QueryRow("SELECT VERSION()").Scan(&version); err != nil {
		t.Fatal(err)
	}
	_, _ = fmt.Sscan(strings.Split(version, ".")[0], &major)
	if _, err := plain.Exec(fenced(s.claim, 7)); (err == nil) != (major >= 13) {
		t.Errorf("UPDATE … RETURNING in %s: %v", version, err)
	}
}

func TestRecipeRedis(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	script := recipes(t, "lua")[0]
	how, _, _ := strings.Cut(script, "\n")
	_, how, _ = strings.Cut(how, "EVAL … ")
	fencedWrites(t, func(fence int) bool {
		args := []any{"EVAL", script}
		for _, arg := range strings.Fields(fenced(how, fence)) {
			if arg == "NEW-VALUE" {
				arg = fmt.Sprintf("of %d", fence)
			}
			args = append(args, arg)
		}
		n, err := s.Do(args...)
		if err != nil {
			t.Error(err)
		}
		return n == int64(1)
	}, func() string {
		return fmt.Sprint(s.Must("MGET", "data", "fence"))
	}, func(last, _ int) string { return fmt.Sprintf("[of %d %d]", last, inRecipes+last) })
}

func TestRecipeS3(t *testing.T) {
	t.Parallel()
	needs(t, "curl", "curl", "")
	server := httptest.NewServer(gofakes3.New(s3mem.New(), gofakes3.WithAutoBucket(true)).Server())
	t.Cleanup(server.Close)
	o := object{t, server.URL + "/bucket/object"}
	parts := recipes(t, "sh")
	if len(parts) != 2 {
		t.Fatalf("%d parts of the recipe for S3", len(parts))
	}
	read, write := parts[0]+"\n", parts[1]
	create := strings.ReplaceAll(write, "If-Match: $etag", "If-None-Match: *")
	refused := func(what string, code int, out string) {
		t.Helper()
		if code != 22 || !strings.Contains(out, "error: 412") {
			t.Errorf("%s: exit code %d: %s", what, code, out)
		}
	}

	if code, out := o.run(t.TempDir(), read+write, 4); code != 22 || !strings.Contains(out, "error: 404") {
		t.Errorf("without an object: exit code %d: %s", code, out)
	}
	if code, out := o.run(t.TempDir(), create, 4); code != 0 {
		t.Errorf("the first write: exit code %d: %s", code, out)
	}
	code, out := o.run(t.TempDir(), create, 5)
	refused("a second first write", code, out)

	late := t.TempDir()
	if code, out = o.run(late, read+`echo "$etag"`, 5); code != 0 {
		t.Errorf("a read: exit code %d: %s", code, out)
	}
	etag := "etag=" + strings.TrimSpace(out)
	fencedWrites(t, func(fence int) bool {
		dir := t.TempDir()
		for {
			code, out := o.run(dir, read+write, fence)
			if code == 22 && strings.Contains(out, "error: 412") {
				continue // read again
			}
			if code > 1 || code < 0 {
				t.Errorf("fence %d: exit code %d: %s", fence, code, out)
			}
			return code == 0
		}
	}, func() string {
		content, _ := o.read()
		return content
	}, func(last, _ int) string { return fmt.Sprintf("%d\nof %d\n", inRecipes+last, last) })
	code, out = o.run(late, write, 5, etag)
	refused("a late write", code, out)

	// Why the fence is not in the metadata: there the ETag would stay the same.
	content, was := o.read()
	if code, out := o.run(t.TempDir(), `curl -fsS -H 'x-amz-meta-fence: 1' --data-binary "$DATA" -X PUT "$URL"`, 5, "DATA="+content); code != 0 {
		t.Errorf("exit code %d: %s", code, out)
	}
	if _, is := o.read(); is != was {
		t.Errorf("ETag %s was %s with other metadata", is, was)
	}
}
