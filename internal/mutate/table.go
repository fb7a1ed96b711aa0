package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// A mutant is one entry of the table.
type mutant struct {
	name  string
	why   string // what the mutant would do to a user
	edits []edit
	test  test
}

// An edit replaces text that occurs once.
type edit struct{ file, old, new string }

// A test is what must fail.
type test struct {
	suite
	run string
}

// A suite is a package as tests run it.
type suite struct{ flags, pkg string }

// parse reads a table. Its errors begin with the line's number.
func parse(r io.Reader) ([]mutant, error) {
	var all []mutant
	var file string
	names := make(map[string]bool)
	closed := true // the next "-" begins a new edit
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		rest = strings.TrimSpace(rest)
		if word == "mutant" {
			if err := complete(all); err != nil {
				return nil, fmt.Errorf("%d: before this line: %w", n, err)
			}
			if rest == "" || names[rest] {
				return nil, fmt.Errorf("%d: a mutant needs a name of its own", n)
			}
			names[rest] = true
			all, file, closed = append(all, mutant{name: rest}), "", true
			continue
		}
		if len(all) == 0 {
			return nil, fmt.Errorf("%d: the table must begin with a mutant", n)
		}
		m := &all[len(all)-1]
		switch {
		case line[0] == '-':
			if file == "" {
				return nil, fmt.Errorf("%d: in which file?", n)
			}
			if closed {
				m.edits = append(m.edits, edit{file: file})
			}
			last := &m.edits[len(m.edits)-1]
			last.old = join(last.old, line[1:], closed)
			closed = false
		case line[0] == '+':
			if len(m.edits) == 0 {
				return nil, fmt.Errorf("%d: \"+\" without \"-\"", n)
			}
			last := &m.edits[len(m.edits)-1]
			last.new = join(last.new, line[1:], !closed)
			closed = true
		case word == "why":
			m.why = rest
		case word == "file":
			file, closed = rest, true
		case word == "test":
			fields := strings.Fields(rest)
			if len(fields) < 2 {
				return nil, fmt.Errorf("%d: want: test [flags] package regexp", n)
			}
			k := len(fields) - 2
			m.test = test{suite{strings.Join(fields[:k], " "), fields[k]}, fields[k+1]}
		default:
			return nil, fmt.Errorf("%d: want mutant, why, file, -, + or test, have %q", n, word)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("0: %w", err)
	}
	if err := complete(all); err != nil {
		return nil, fmt.Errorf("0: at the end: %w", err)
	}
	return all, nil
}

func join(text, line string, first bool) string {
	if first {
		return line
	}
	return text + "\n" + line
}

// complete reports what the last mutant lacks.
func complete(all []mutant) error {
	if len(all) == 0 {
		return nil
	}
	m := all[len(all)-1]
	switch {
	case m.why == "":
		return fmt.Errorf("%s has no \"why\"", m.name)
	case len(m.edits) == 0:
		return fmt.Errorf("%s changes nothing", m.name)
	case m.test.pkg == "":
		return fmt.Errorf("%s has no \"test\"", m.name)
	}
	return nil
}

// apply returns the changed files: path from root to content.
func (m mutant) apply(root string) (map[string]string, error) {
	changed := make(map[string]string)
	for _, e := range m.edits {
		text, seen := changed[e.file]
		if !seen {
			b, err := os.ReadFile(filepath.Join(root, e.file))
			if err != nil {
				return nil, err
			}
			text = string(b)
		}
		if e.old == e.new {
			return nil, errors.New("an edit changes nothing")
		}
		if n := strings.Count(text, e.old); n != 1 {
			return nil, fmt.Errorf("its text occurs %d times in %s, not once: the code has moved on", n, e.file)
		}
		changed[e.file] = strings.Replace(text, e.old, e.new, 1)
	}
	return changed, nil
}
