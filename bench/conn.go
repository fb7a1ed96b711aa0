package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"time"

	"github.com/soloist-dev/soloist/bench/internal/rig"
)

// oneConn sends requests on one connection until end. It writes and reads by hand:
// Go's own client costs more than the server that is to be measured.
func oneConn(ctx context.Context, target string, end time.Time) (rig.Samples, int, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, 0, err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return nil, 0, err
	}
	defer conn.Close()
	request := []byte("GET " + u.Path + " HTTP/1.1\r\nHost: " + u.Host + "\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n")
	answers := bufio.NewReader(conn)
	var samples rig.Samples
	bad := 0
	for now := time.Now(); now.Before(end) && ctx.Err() == nil; {
		if _, err := conn.Write(request); err != nil {
			return nil, 0, err
		}
		status, err := readAnswer(answers)
		if err != nil {
			return nil, 0, err
		}
		if status != 200 {
			bad++
		}
		was := now
		now = time.Now()
		samples = append(samples, now.Sub(was))
	}
	return samples, bad, nil
}

// readAnswer reads one answer that has a Content-Length, and returns its status.
func readAnswer(r *bufio.Reader) (status int, err error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if len(line) < len("HTTP/1.1 200") {
		return 0, fmt.Errorf("answer begins %q", line)
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, fmt.Errorf("answer begins %q", line)
	}
	length := -1
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			break
		}
		const name = "content-length:"
		if len(line) > len(name) && bytes.EqualFold(line[:len(name)], []byte(name)) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(line[len(name):]))); err != nil {
				return 0, err
			}
		}
	}
	if length < 0 {
		return 0, fmt.Errorf("answer %d without Content-Length", status)
	}
	_, err = io.CopyN(io.Discard, r, int64(length))
	return status, err
}
