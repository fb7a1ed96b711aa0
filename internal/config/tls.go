package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
)

// TLSFiles says how a rediss:// store is trusted, and how it trusts us. Paths are of PEM
// files. The zero TLSFiles trusts the system's authorities and shows no certificate.
type TLSFiles struct {
	CA         string // --tls-ca-file; "": the system's
	Cert, Key  string // --tls-cert-file, --tls-key-file; both or none
	ServerName string // --tls-server-name; "": the URL's host
}

// mention names the flags that are set.
func (t TLSFiles) mention() string {
	var set []string
	for _, f := range []struct{ name, value string }{
		{"tls-ca-file", t.CA}, {"tls-cert-file", t.Cert}, {"tls-key-file", t.Key}, {"tls-server-name", t.ServerName},
	} {
		if f.value != "" {
			set = append(set, mention(f.name))
		}
	}
	return strings.Join(set, ", ")
}

// TLSConfig reads the files and returns a client's configuration, nil if no TLS flag is set.
// Asked for each new connection, it lets certificate and authorities be renewed without a
// restart. An error names the flag of the file.
func (s Store) TLSConfig() (*tls.Config, error) {
	t := s.TLS
	if t == (TLSFiles{}) {
		return nil, nil // which the store takes for: what the URL implies
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	var errs []error
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err == nil {
			c.RootCAs = x509.NewCertPool()
			if !c.RootCAs.AppendCertsFromPEM(pem) {
				err = fmt.Errorf("%s holds no PEM certificate", t.CA)
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", mention("tls-ca-file"), err))
		}
	}
	if t.Cert != "" {
		cert, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s, %s: %w", mention("tls-cert-file"), mention("tls-key-file"), err))
		}
		c.Certificates = []tls.Certificate{cert}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return c, nil
}
