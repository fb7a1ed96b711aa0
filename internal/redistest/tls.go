package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// TLSFiles are the paths of PEM files, for programs that are configured by path:
// the authority that signed the server's certificate, and a client's certificate
// and key. They are gone after the test.
type TLSFiles struct{ CA, Cert, Key string }

// TLSFiles returns the paths of the files made by the option TLS.
func (s *Server) TLSFiles() TLSFiles { return s.certs.files }

// TLSConfig returns a new client configuration that trusts this server alone and
// shows the client certificate. It is nil without the option TLS.
func (s *Server) TLSConfig() *tls.Config { return s.certs.client.Clone() }

type certs struct {
	dir    string
	files  TLSFiles
	client *tls.Config
}

// makeCerts makes an authority, and a server's and a client's certificate signed
// by it, and writes them to dir.
func makeCerts(dir string) (certs, error) {
	ca, err := newPair(&x509.Certificate{
		Subject:               pkix.Name{CommonName: "redistest CA"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}, nil)
	if err != nil {
		return certs{}, err
	}
	server, err := newPair(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "redistest server"},
		DNSNames:    []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, // to other nodes
	}, ca)
	if err != nil {
		return certs{}, err
	}
	client, err := newPair(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "redistest client"},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, ca)
	if err != nil {
		return certs{}, err
	}
	for name, p := range map[string]*pair{"ca": ca, "server": server, "client": client} {
		if err := p.write(filepath.Join(dir, name)); err != nil {
			return certs{}, err
		}
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	return certs{
		dir: dir,
		files: TLSFiles{
			CA:   filepath.Join(dir, "ca.crt"),
			Cert: filepath.Join(dir, "client.crt"),
			Key:  filepath.Join(dir, "client.key"),
		},
		client: &tls.Config{
			MinVersion:   tls.VersionTLS12,
			RootCAs:      roots,
			ServerName:   "127.0.0.1",
			Certificates: []tls.Certificate{{Certificate: [][]byte{client.cert.Raw}, PrivateKey: client.key}},
		},
	}, nil
}

// A pair is a certificate and its key.
type pair struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// newPair makes a key and its certificate, valid for a day, signed by an
// authority, or by itself if that is nil.
func newPair(template *x509.Certificate, by *pair) (*pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		return nil, err
	}
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = template.NotBefore.AddDate(0, 0, 1)
	if by == nil {
		by = &pair{cert: template, key: key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, key.Public(), by.key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &pair{cert: cert, key: key}, err
}

// write writes path.crt and path.key.
func (p *pair) write(path string) error {
	key, err := x509.MarshalPKCS8PrivateKey(p.key)
	if err != nil {
		return err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
	if err := os.WriteFile(path+".key", text, 0o600); err != nil {
		return err
	}
	text = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.cert.Raw})
	return os.WriteFile(path+".crt", text, 0o600)
}
