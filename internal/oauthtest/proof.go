package oauthtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/golang-jwt/jwt/v5"
)

// checkProof checks the proof that a request carries for a token, empty where it
// asks for one, and returns the key that signed it. It takes each proof once.
func (w *World) checkProof(r *http.Request, token string) (key string, err error) {
	proofs := r.Header.Values("DPoP")
	if len(proofs) != 1 {
		return "", fmt.Errorf("%d proofs", len(proofs))
	}
	var public *ecdsa.PublicKey
	claims := jwt.MapClaims{}
	parsed, err := jwt.ParseWithClaims(proofs[0], claims, func(t *jwt.Token) (any, error) {
		public, key, err = publicOf(t.Header["jwk"])
		return public, err
	}, jwt.WithValidMethods([]string{"ES256"}), jwt.WithIssuedAt())
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(token))
	id, _ := claims["jti"].(string)
	switch {
	case parsed.Header["typ"] != "dpop+jwt":
		return "", errors.New("typ")
	case claims["htm"] != r.Method || claims["htu"] != "http://"+r.Host+r.URL.Path:
		return "", fmt.Errorf("it is for %v %v", claims["htm"], claims["htu"])
	case token != "" && claims["ath"] != base64.RawURLEncoding.EncodeToString(sum[:]):
		return "", errors.New("it is for another token")
	case id == "" || w.proofs[id]:
		return "", errors.New("it was used before")
	}
	w.proofs[id] = true
	if nonce, _ := claims["nonce"].(string); nonce != w.ProofNonce {
		return "", errNonce
	}
	return key, nil
}

var errNonce = errors.New("another nonce")

func publicOf(jwk any) (*ecdsa.PublicKey, string, error) {
	m, _ := jwk.(map[string]any)
	x, _ := m["x"].(string)
	y, _ := m["y"].(string)
	if _, private := m["d"]; private || m["kty"] != "EC" || m["crv"] != "P-256" {
		return nil, "", errors.New("no public key of P-256")
	}
	point := []byte{4}
	for _, part := range []string{x, y} {
		b, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil {
			return nil, "", err
		}
		point = append(point, b...)
	}
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	return key, x + "." + y, err
}

// admitsProof looks at the token and the proof of a request to the service.
func (w *World) admitsProof(out http.ResponseWriter, r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if token == "" || scheme != "DPoP" {
		w.wantProof(out, "")
		return false
	}
	key, err := w.checkProof(r, token)
	switch {
	case errors.Is(err, errNonce):
		w.wantProof(out, `, error="use_dpop_nonce"`)
	case err != nil || w.bound[token] != key:
		w.Faults = append(w.Faults, fmt.Sprintf("the service got a bad proof: %v", err))
		w.wantProof(out, `, error="invalid_token"`)
	default:
		return true
	}
	return false
}

func (w *World) wantProof(out http.ResponseWriter, more string) {
	if w.ProofNonce != "" {
		out.Header().Set("DPoP-Nonce", w.ProofNonce)
	}
	out.Header().Set("WWW-Authenticate", fmt.Sprintf(`DPoP resource_metadata="%s/.well-known/oauth-protected-resource/mcp"%s`, w.Service.URL, more))
	out.WriteHeader(http.StatusUnauthorized)
}

// provesToken checks the proof of a token request, and answers where it does not
// do.
func (w *World) provesToken(out http.ResponseWriter, r *http.Request) (key string, ok bool) {
	key, err := w.checkProof(r, "")
	if err == nil {
		return key, true
	}
	if w.ProofNonce != "" {
		out.Header().Set("DPoP-Nonce", w.ProofNonce)
	}
	code := "invalid_dpop_proof"
	if errors.Is(err, errNonce) {
		code = "use_dpop_nonce"
	} else {
		w.Faults = append(w.Faults, "the server got a bad proof: "+err.Error())
	}
	WriteJSON(out, http.StatusBadRequest, map[string]string{"error": code})
	return "", false
}

// Renew makes another nonce the one that proofs must have.
func (w *World) Renew(nonce string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ProofNonce = nonce
}
