package apphealth

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

const (
	maxBody      = 64 << 10 // of an answer that is read, so that its connection can be used again
	maxHeader    = 16 << 10
	maxRedirects = 3
)

// prober asks the app whether it is well.
type prober struct {
	url             string
	period, timeout time.Duration
	client          http.Client
}

func newProber(c Config) *prober {
	p := &prober{url: c.URL, period: c.Period, timeout: c.Timeout}
	p.client.CheckRedirect = checkRedirect
	p.client.Transport = c.Transport
	if c.Transport == nil {
		p.client.Transport = transport(c)
	}
	return p
}

// transport keeps one connection. It knows no proxy: HTTP_PROXY in a pod is for others.
func transport(c Config) http.RoundTripper {
	t := &http.Transport{
		DialContext:            (&net.Dialer{Timeout: c.Timeout}).DialContext,
		TLSHandshakeTimeout:    c.Timeout,
		MaxIdleConns:           1,
		MaxIdleConnsPerHost:    1,
		IdleConnTimeout:        3 * c.Period,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeader,
	}
	if u, err := url.Parse(c.URL); err == nil && loopback(u.Hostname()) {
		// Nobody issues certificates for loopback addresses, and nobody is in between.
		t.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	}
	return t
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// checkRedirect follows the app to another page of its own, as from /health to /health/.
// Where it sends us elsewhere, its redirect is the answer, and that is not 2xx: somebody
// else's health says nothing about the app's.
func checkRedirect(req *http.Request, via []*http.Request) error {
	first := via[0].URL
	if len(via) > maxRedirects || req.URL.Host != first.Host || req.URL.Scheme != first.Scheme {
		return http.ErrUseLastResponse
	}
	return nil
}

// run asks at once and then every period until ctx is done, and hands on each outcome.
func (p *prober) run(ctx context.Context, answers chan<- error) {
	defer p.client.CloseIdleConnections()
	tick := time.NewTicker(p.period)
	defer tick.Stop()
	for {
		err := p.ask(ctx)
		if ctx.Err() != nil {
			return // what was cut short is no failure of the app
		}
		select {
		case answers <- err:
		case <-ctx.Done():
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// ask returns nil if the app answers 2xx in time. Its errors do not hold the URL, which
// may hold a password.
func (p *prober) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
	if err != nil {
		return errors.New("not a URL")
	}
	req.Header.Set("User-Agent", "soloist")
	resp, err := p.client.Do(req)
	if err != nil {
		var detail *url.Error
		if errors.As(err, &detail) {
			err = detail.Err
		}
		return err
	}
	// The status has said it; the rest is only read so that the connection can be used again.
	_, _ = io.CopyN(io.Discard, resp.Body, maxBody)
	resp.Body.Close()
	switch resp.StatusCode / 100 {
	case 2:
		return nil
	case 3:
		return fmt.Errorf("status %d: redirects are followed only within the same host and port", resp.StatusCode)
	}
	return fmt.Errorf("status %d", resp.StatusCode)
}
