package rig

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// A Table is the outcome of one row of the budget.
type Table struct {
	Title   string
	Budget  string
	Columns []string
	Rows    [][]string
	Notes   []string
}

// Add appends a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Note appends a line below the table.
func (t *Table) Note(format string, args ...any) {
	t.Notes = append(t.Notes, fmt.Sprintf(format, args...))
}

// Text writes the table with aligned columns.
func (t *Table) Text(w io.Writer) {
	fmt.Fprintf(w, "\n%s\n", t.Title)
	if t.Budget != "" {
		fmt.Fprintf(w, "budget: %s\n", t.Budget)
	}
	width := make([]int, len(t.Columns))
	all := append([][]string{t.Columns}, t.Rows...)
	for _, row := range all {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range all {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				line.WriteString("  " + cell + pad)
			} else {
				line.WriteString("  " + pad + cell)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
	for _, n := range t.Notes {
		fmt.Fprintf(w, "  (%s)\n", n)
	}
}

// Markdown writes the table as a section of a page.
func (t *Table) Markdown(w io.Writer) {
	fmt.Fprintf(w, "\n## %s\n\n", t.Title)
	if t.Budget != "" {
		fmt.Fprintf(w, "Budget: %s.\n\n", t.Budget)
	}
	fmt.Fprintf(w, "| %s |\n|%s\n", strings.Join(t.Columns, " | "), strings.Repeat("---|", len(t.Columns)))
	for _, row := range t.Rows {
		fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
	}
	for _, n := range t.Notes {
		fmt.Fprintf(w, "\n%s\n", n)
	}
}
