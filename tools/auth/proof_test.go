package auth

import (
	"fmt"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/internal/oauthtest"
)

// The service and its server of the test check each proof, and take none twice.
func TestTokensThatAreBoundToAKey(t *testing.T) {
	for _, nonce := range []string{"", "n1"} {
		t.Run("nonce "+nonce, func(t *testing.T) {
			w, g := oauthtest.New(t), newGate(t)
			w.Proofs, w.ProofNonce = true, nonce
			c, u := g.client(t, w, Config{Binding: PerUser})
			link, _ := needsPerson(t, c, w, ada)
			agree(t, link)
			welcome(t, c, w, ada)
			if nonce != "" {
				w.Renew("n2")
			}
			welcome(t, c, w, ada)
			expired(t, g, u)
			together(t, c, w, ada)
			if len(w.Faults) > 0 {
				t.Error(w.Faults)
			}
			if n := len(w.Bodies); n != 2+callers {
				t.Errorf("the service took %d requests", n)
			}
		})
	}
}

func TestAServerThatTakesOtherProofs(t *testing.T) {
	w, g := oauthtest.New(t), newGate(t)
	w.Proofs, w.ProofAlgorithms = true, []string{"RS256"}
	c, _ := g.client(t, w, Config{})
	if _, _, err := post(t, c, w.Service.URL+"/mcp", ada); err == nil || !strings.Contains(err.Error(), "ES256") {
		t.Errorf("the request gave %v", err)
	}
}

func TestTheKeyOfATokenIsHidden(t *testing.T) {
	key, err := newProofKey()
	if err != nil {
		t.Fatal(err)
	}
	server := Server{Issuer: "https://login.example", ProofKey: key}
	for _, shown := range []string{fmt.Sprintf("%v", server), fmt.Sprintf("%+v", server), fmt.Sprintf("%#v", server), server.LogValue().String()} {
		if strings.Contains(shown, fmt.Sprint(key[:8])[1:]) || len(shown) > 60 {
			t.Errorf("shown as %s", shown)
		}
	}
	if _, err := parseProofKey(key[1:]); err == nil {
		t.Error("a damaged key is taken")
	}
}
