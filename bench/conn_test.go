package main

import (
	"bufio"
	"io"
	"strings"
	"testing"
)

func TestReadAnswer(t *testing.T) {
	r := bufio.NewReader(strings.NewReader("HTTP/1.1 503 Service Unavailable\r\ncontent-LENGTH: 5\r\nX: y\r\n\r\nhello" +
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" +
		"HTTP/1.1 200 OK\r\n\r\n"))
	for _, want := range []int{503, 200} {
		if got, err := readAnswer(r); got != want || err != nil {
			t.Fatalf("readAnswer = %d, %v; want %d", got, err, want)
		}
	}
	if _, err := readAnswer(r); err == nil {
		t.Error("readAnswer took an answer without a length")
	}
	if _, err := readAnswer(bufio.NewReader(strings.NewReader(""))); err != io.EOF { //nolint:errorlint // exactly
		t.Errorf("readAnswer of nothing: %v, want EOF", err)
	}
}

func TestFlags(t *testing.T) {
	for _, args := range [][]string{{"-only", "("}, {"-beside", "("}, {"-runs", "0"}, {"extra"}, {"-nonsense"}} {
		if b, code := newBench(args, io.Discard); b != nil || code != 2 {
			t.Errorf("newBench(%q): code %d, want 2", args, code)
		}
	}
	b, _ := newBench([]string{"-beside", "^raw"}, io.Discard)
	if b == nil {
		t.Fatal("newBench refused good flags")
	}
	list := b.systems(false)
	if len(list) != 2 || list[0].Name != "soloist" || list[1].Name != "raw SET NX + Lua DEL" {
		t.Errorf("systems = %d of them, want ours and raw", len(list))
	}
}

func TestAlternate(t *testing.T) {
	list := []int{1, 2, 3}
	if got := alternate(list, 4); got[0] != 2 || got[1] != 3 || got[2] != 1 || list[0] != 1 {
		t.Errorf("alternate = %v", got)
	}
}
