package peertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

const (
	certFile = "server.crt"
	keyFile  = "server.key"
)

// identity is a certificate for the loopback addresses that vouches for itself.
type identity struct {
	roots *x509.CertPool
}

// Certificate writes a certificate for the loopback addresses and for more of them, and its key, both PEM, to a folder.
// The certificate vouches for itself.
func Certificate(t testing.TB, dir string, more ...net.IP) (cert, key string) {
	t.Helper()
	newIdentity(t, dir, more...)
	return filepath.Join(dir, certFile), filepath.Join(dir, keyFile)
}

// newIdentity writes a certificate and its key, both PEM, to a folder.
func newIdentity(t testing.TB, dir string, more ...net.IP) *identity {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("peertest: %v", err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "peertest"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
		DNSNames:              []string{"localhost"},
		IPAddresses:           append([]net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}, more...),
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatalf("peertest: %v", err)
	}
	keyBytes, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatalf("peertest: %v", err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	writePrivate(t, filepath.Join(dir, certFile), certPEM)
	writePrivate(t, filepath.Join(dir, keyFile), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyBytes}))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certPEM)
	return &identity{roots: roots}
}

func writePrivate(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatalf("peertest: %v", err)
	}
}
