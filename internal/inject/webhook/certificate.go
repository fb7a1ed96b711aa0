package webhook

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"
)

const (
	authorityLasts = 10 * 365 * 24 * time.Hour
	// backdated is for API servers whose clocks are behind.
	backdated = time.Hour
)

// bundle is the content of the Secret: authorities (PEM, the newest first), the newest
// one's key, and a certificate that it has signed, with its key.
type bundle struct{ authorities, authorityKey, certificate, key []byte }

// due returns when the bundle has to be renewed: when a third of its certificate's life is
// left, or a tenth of the authority's; an error if it is of no use for the host.
func (b bundle) due(host string) (time.Time, error) {
	pair, err := tls.X509KeyPair(b.certificate, b.key)
	if err != nil {
		return time.Time{}, err
	}
	authority, err := first(b.authorities)
	if err != nil {
		return time.Time{}, err
	}
	leaf := pair.Leaf
	if err := leaf.VerifyHostname(host); err != nil {
		return time.Time{}, err
	}
	if err := leaf.CheckSignatureFrom(authority); err != nil {
		return time.Time{}, err
	}
	due := leaf.NotAfter.Add(-leaf.NotAfter.Sub(leaf.NotBefore) / 3)
	if last := authority.NotAfter.Add(-authorityLasts / 10); last.Before(due) {
		due = last
	}
	return due, nil
}

// renew returns a bundle with a new certificate for the host. The authority is kept while
// it lasts; a new one is put before the old, which stays trusted until all have taken the
// new certificate.
func (b bundle) renew(host string, lasts time.Duration, now time.Time) (bundle, error) {
	authority, err := first(b.authorities)
	var key *ecdsa.PrivateKey
	if err == nil {
		key, err = parseKey(b.authorityKey)
	}
	if err != nil || now.After(authority.NotAfter.Add(-authorityLasts/10)) || !key.PublicKey.Equal(authority.PublicKey) {
		var encoded []byte
		if authority, key, encoded, err = newAuthority(now); err != nil {
			return bundle{}, err
		}
		old, _ := pem.Decode(b.authorities)
		b.authorities = encoded
		if old != nil {
			b.authorities = append(b.authorities, pem.EncodeToMemory(old)...)
		}
		if b.authorityKey, err = encodeKey(key); err != nil {
			return bundle{}, err
		}
	}
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return bundle{}, err
	}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: now.Add(-min(backdated, lasts/10)), NotAfter: now.Add(lasts),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, authority, &own.PublicKey, key)
	if err != nil {
		return bundle{}, err
	}
	b.certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	b.key, err = encodeKey(own)
	return b, err
}

func newAuthority(now time.Time) (*x509.Certificate, *ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "soloist-injector"},
		NotBefore: now.Add(-backdated), NotAfter: now.Add(authorityLasts),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, nil, nil, err
	}
	authority, err := x509.ParseCertificate(der)
	return authority, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), err
}

func serial() *big.Int {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		panic(err) // crypto/rand does not fail
	}
	return n
}

func first(authorities []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(authorities)
	if block == nil {
		return nil, errors.New("no certificate of an authority")
	}
	return x509.ParseCertificate(block.Bytes)
}

func parseKey(encoded []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(encoded)
	if block == nil {
		return nil, errors.New("no key")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	own, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("a key of another kind: %T", key)
	}
	return own, nil
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
}
