package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
)

const localhost = "localhost"

// portTries is how often Listen looks for a port that is free on both addresses.
const portTries = 10

// Listen opens host:port for [Server.Serve]; connections wait until then. For the host
// localhost it opens 127.0.0.1 and, where the machine has it, [::1], with the same port,
// since either may be what a client takes localhost for. Port 0 is one that is free on
// both. Any host that is not loopback is refused: whoever reaches the server may resign.
func Listen(ctx context.Context, addr string) ([]net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	config := net.ListenConfig{KeepAlive: -1} // a peer on this machine does not vanish
	if host != localhost {
		if !loopbackIP(host) {
			return nil, fmt.Errorf("api: %s is not a loopback address, and whoever reached it could resign; use localhost", addr)
		}
		l, err := config.Listen(ctx, "tcp", addr)
		if err != nil {
			return nil, fmt.Errorf("api: %w", err)
		}
		return []net.Listener{l}, nil
	}
	for try := 1; ; try++ {
		both, err := listenBoth(ctx, config, port)
		switch {
		case err == nil:
			return both, nil
		case port != "0", !errors.Is(err, syscall.EADDRINUSE), try == portTries:
			return nil, fmt.Errorf("api: %w", err)
		}
	}
}

func listenBoth(ctx context.Context, config net.ListenConfig, port string) ([]net.Listener, error) {
	four, err := config.Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return nil, err
	}
	_, port, err = net.SplitHostPort(four.Addr().String()) // the one that 0 stands for
	if err != nil {
		four.Close()
		return nil, err
	}
	six, err := config.Listen(ctx, "tcp6", net.JoinHostPort("::1", port))
	switch {
	case err == nil:
		return []net.Listener{four, six}, nil
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.EAFNOSUPPORT):
		return []net.Listener{four}, nil // a machine without IPv6
	default: // somebody else would answer half of the clients
		four.Close()
		return nil, err
	}
}
