// Command relay makes one address inside the node's network namespace reachable from outside, on loopback. A
// socket belongs to the namespace that it was made in, so one process opens the listener outside and hands it
// to another, inside:
//
//	relay listen FILE CMD…	listens on a free port, writes it to FILE and becomes CMD, with the listener as descriptor 3
//	relay serve ADDRESS	passes what connects to descriptor 3 on to ADDRESS
package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

const listenerFD = 3

func main() {
	err := errors.New("usage: relay listen FILE CMD… | relay serve ADDRESS")
	switch {
	case len(os.Args) > 3 && os.Args[1] == "listen":
		err = listen(os.Args[2], os.Args[3:])
	case len(os.Args) == 3 && os.Args[1] == "serve":
		err = serve(os.Args[2])
	}
	fmt.Fprintln(os.Stderr, "relay:", err)
	os.Exit(1)
}

// listen returns only if it fails.
func listen(file string, cmd []string) error {
	path, err := exec.LookPath(cmd[0])
	if err != nil {
		return err
	}
	ln, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	f, err := ln.File()
	if err != nil {
		return err
	}
	port := ln.Addr().(*net.TCPAddr).Port
	if err := os.WriteFile(file, []byte(strconv.Itoa(port)+"\n"), 0o600); err != nil {
		return err
	}
	// This may close a descriptor of Go's runtime, which nothing needs any more before the exec.
	if err := syscall.Dup3(int(f.Fd()), listenerFD, 0); err != nil {
		return err
	}
	return syscall.Exec(path, cmd, os.Environ())
}

func serve(address string) error {
	ln, err := net.FileListener(os.NewFile(listenerFD, "listener"))
	if err != nil {
		return err
	}
	for {
		conn, err := ln.Accept()
		if err != nil {
			return err
		}
		go relay(conn.(*net.TCPConn), address)
	}
}

// relay returns when both directions have ended. One may end before the other: kubectl exec does so.
func relay(outside *net.TCPConn, address string) {
	defer outside.Close()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return // the caller sees a closed connection, as it would without a relay
	}
	inside := conn.(*net.TCPConn)
	defer inside.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		pass(inside, outside)
	}()
	pass(outside, inside)
	<-done
}

func pass(to, from *net.TCPConn) {
	if _, err := io.Copy(to, from); err != nil {
		to.Close() // broken: neither direction goes on
		from.Close()
		return
	}
	_ = to.CloseWrite() // fails if the other end has gone, which its read will show
}
