package auth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/toolcrib/toolcrib/internal/netguard"
)

// What RFC 9449 calls things: a proof says that who sends a token has the key that
// it was issued for.
const (
	proofHeader    = "DPoP"
	nonceHeader    = "DPoP-Nonce"
	proofAlgorithm = "ES256"
	wantsNonce     = "use_dpop_nonce"
)

// A proofKey signs the proofs of one token.
type proofKey struct{ key *ecdsa.PrivateKey }

// newProofKey returns a new key in PKCS #8.
func newProofKey() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return x509.MarshalPKCS8PrivateKey(key)
}

func parseProofKey(der []byte) (*proofKey, error) {
	key, err := x509.ParsePKCS8PrivateKey(der)
	ec, ok := key.(*ecdsa.PrivateKey)
	if err != nil || !ok {
		return nil, refuse("the key of the token is damaged")
	}
	return &proofKey{ec}, nil
}

// proof is for one request. token is empty where none is sent yet.
func (k *proofKey) proof(method string, u *url.URL, token, nonce string) (string, error) {
	target := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	claims := jwt.MapClaims{"jti": rand.Text(), "htm": method, "htu": target.String(), "iat": time.Now().Unix()}
	if token != "" {
		sum := sha256.Sum256([]byte(token))
		claims["ath"] = base64.RawURLEncoding.EncodeToString(sum[:])
	}
	if nonce != "" {
		claims["nonce"] = nonce
	}
	t := jwt.NewWithClaims(jwt.SigningMethodES256, claims)
	t.Header["typ"] = "dpop+jwt"
	t.Header["jwk"] = k.public()
	return t.SignedString(k.key)
}

// public is the key as a JWK, without its private part.
func (k *proofKey) public() map[string]string {
	point, err := k.key.PublicKey.Bytes() // 4, and the two coordinates
	if err != nil || len(point) != 65 {
		return nil
	}
	encode := base64.RawURLEncoding.EncodeToString
	return map[string]string{"kty": "EC", "crv": "P-256", "x": encode(point[1:33]), "y": encode(point[33:])}
}

// nonces are what servers want to find in the next proof, by origin.
type nonces struct {
	mu       sync.Mutex
	byOrigin map[string]string
}

func (n *nonces) of(u *url.URL) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.byOrigin[netguard.Origin(u)]
}

// heard keeps the nonce of an answer, and reports whether it brought one that the
// request did not have.
func (n *nonces) heard(u *url.URL, resp *http.Response) bool {
	nonce := resp.Header.Get(nonceHeader)
	if nonce == "" {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.byOrigin == nil {
		n.byOrigin = map[string]string{}
	}
	known := n.byOrigin[netguard.Origin(u)] == nonce
	n.byOrigin[netguard.Origin(u)] = nonce
	return !known
}

// A provingTransport sends token requests with proofs, and once more with the
// nonce that a server answers.
type provingTransport struct {
	base   http.RoundTripper
	key    *proofKey
	nonces *nonces
}

func (t *provingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.send(req)
	if err != nil {
		return nil, err
	}
	fresh := t.nonces.heard(req.URL, resp)
	if !fresh || resp.StatusCode != http.StatusBadRequest && resp.StatusCode != http.StatusUnauthorized || req.GetBody == nil {
		return resp, nil
	}
	body, err := req.GetBody()
	if err != nil {
		return resp, nil
	}
	setAside(resp)
	again := req.Clone(req.Context())
	again.Body = body
	return t.send(again)
}

func (t *provingTransport) send(req *http.Request) (*http.Response, error) {
	proof, err := t.key.proof(req.Method, req.URL, "", t.nonces.of(req.URL))
	if err != nil {
		return nil, refused(req, refuse("the proof cannot be signed"))
	}
	req = req.Clone(req.Context())
	req.Header.Set(proofHeader, proof)
	return t.base.RoundTrip(req)
}
