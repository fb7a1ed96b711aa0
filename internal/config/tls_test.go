package config

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
	"strings"
	"testing"
	"time"
)

// issuer is an authority that writes PEM files to dir.
type issuer struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newIssuer(t *testing.T) *issuer {
	a := &issuer{t: t, dir: t.TempDir()}
	a.cert, a.key = a.issue("ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true})
	return a
}

// issue writes name.crt and name.key.
func (a *issuer) issue(name string, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	must := func(err error) {
		a.t.Helper()
		if err != nil {
			a.t.Fatal(err)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	template.Subject = pkix.Name{CommonName: name}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	must(err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	must(err)
	must(os.WriteFile(a.file(name+".crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	must(os.WriteFile(a.file(name+".key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), 0o600))
	cert, err := x509.ParseCertificate(der)
	must(err)
	return cert, key
}

func (a *issuer) file(name string) string { return filepath.Join(a.dir, name) }

// shake returns what the server saw of a client with c, and the client's error.
func (a *issuer) shake(c *tls.Config) (*x509.Certificate, error) {
	a.t.Helper()
	cert, err := tls.LoadX509KeyPair(a.file("server.crt"), a.file("server.key"))
	if err != nil {
		a.t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") // a pipe without a buffer would hang where both write
	if err != nil {
		a.t.Fatal(err)
	}
	defer listener.Close()
	here, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		a.t.Fatal(err)
	}
	defer here.Close()
	there, err := listener.Accept()
	if err != nil {
		a.t.Fatal(err)
	}
	defer there.Close()
	server := tls.Server(there, &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequestClientCert,
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Handshake() // the client's error is what counts
	}()
	err = tls.Client(here, c).Handshake()
	<-done
	if seen := server.ConnectionState().PeerCertificates; len(seen) > 0 {
		return seen[0], err
	}
	return nil, err
}

func TestTLSConfig(t *testing.T) {
	a := newIssuer(t)
	a.issue("server", &x509.Certificate{DNSNames: []string{"redis"}})
	first, _ := a.issue("client", &x509.Certificate{})

	c, err := Store{TLS: TLSFiles{
		CA: a.file("ca.crt"), Cert: a.file("client.crt"), Key: a.file("client.key"), ServerName: "redis",
	}}.TLSConfig()
	if err != nil {
		t.Fatal(err)
	}
	seen, err := a.shake(c)
	if err != nil || seen == nil || !seen.Equal(first) {
		t.Fatalf("handshake: %v; the server saw %v", err, seen)
	}
	second, _ := a.issue("client", &x509.Certificate{})
	if c, err = (Store{TLS: TLSFiles{CA: a.file("ca.crt"), Cert: a.file("client.crt"), Key: a.file("client.key"), ServerName: "redis"}}).TLSConfig(); err != nil {
		t.Fatal(err)
	}
	if seen, err = a.shake(c); err != nil || seen == nil || !seen.Equal(second) {
		t.Fatalf("handshake with a renewed certificate: %v; the server saw %v", err, seen)
	}

	for name, files := range map[string]TLSFiles{
		"other name":           {CA: a.file("ca.crt"), ServerName: "other"},
		"other authority":      {CA: newIssuer(t).file("ca.crt"), ServerName: "redis"},
		"system's authorities": {ServerName: "redis"},
	} {
		c, err := Store{TLS: files}.TLSConfig()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.shake(c); err == nil {
			t.Errorf("%s: the handshake succeeds", name)
		}
	}
}

func TestTLSConfigErrors(t *testing.T) {
	if c, err := (Store{}).TLSConfig(); c != nil || err != nil {
		t.Errorf("without flags: %v %v", c, err)
	}
	a := newIssuer(t)
	_, err := Store{TLS: TLSFiles{CA: a.file("none"), Cert: a.file("ca.crt"), Key: a.file("none")}}.TLSConfig()
	if err == nil {
		t.Fatal("missing files pass")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 2 ||
		!strings.HasPrefix(lines[0], "--tls-ca-file (SOLOIST_TLS_CA_FILE): open ") ||
		!strings.HasPrefix(lines[1], "--tls-cert-file (SOLOIST_TLS_CERT_FILE), --tls-key-file (SOLOIST_TLS_KEY_FILE): open ") {
		t.Errorf("got %q", lines)
	}
	_, err = Store{TLS: TLSFiles{CA: a.file("ca.key")}}.TLSConfig()
	if want := "--tls-ca-file (SOLOIST_TLS_CA_FILE): " + a.file("ca.key") + " holds no PEM certificate"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
