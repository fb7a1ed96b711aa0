package redistest

import (
	"crypto/tls"
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestTLS(t *testing.T) {
	t.Parallel()
	CheckLeaks(t)
	s := Start(t, TLS(), ConfigLines("tls-auth-clients yes"))
	if s.URL() != "rediss://"+s.Addr() {
		t.Error(s.URL())
	}
	ping := func(conf *tls.Config) error {
		c, err := tls.Dial("tcp", s.Addr(), conf)
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := c.Write([]byte("*1\r\n$4\r\nPING\r\n")); err != nil {
			return err
		}
		m, err := newReader(c).next()
		if err == nil && m.value != "PONG" {
			return fmt.Errorf("%v", m.value)
		}
		return err
	}
	if err := ping(s.TLSConfig()); err != nil {
		t.Error(err)
	}
	files := s.TLSFiles()
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if ca, caErr := os.ReadFile(files.CA); err != nil || caErr != nil || !strings.Contains(string(ca), "CERTIFICATE") {
		t.Error(err, caErr)
	}
	conf := s.TLSConfig()
	conf.Certificates = []tls.Certificate{pair}
	if err := ping(conf); err != nil {
		t.Error(err)
	}
	conf.Certificates = nil
	if err := ping(conf); err == nil {
		t.Error("served without a client certificate")
	}
	if err := ping(&tls.Config{MinVersion: tls.VersionTLS12}); err == nil {
		t.Error("trusted by the system")
	}
	if Start(t).TLSConfig() != nil {
		t.Error("TLSConfig without TLS")
	}
}
