package auth

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
)

// hidden is what is shown of a value that holds secrets.
const hidden = "[hidden]"

// expiresEarly is how long before its end a token is renewed, for the way that
// a request takes.
const expiresEarly = 10 * time.Second

// Token is what an authorization server issued, with what renewing it takes. It
// is not changed once it is stored. Printing or logging it shows nothing of it;
// a Store that keeps it outside of memory must seal it.
type Token struct {
	AccessToken  string    `json:"access_token"`
	RefreshToken string    `json:"refresh_token,omitempty"`
	Type         string    `json:"token_type,omitempty"`
	Expiry       time.Time `json:"expiry,omitzero"`
	// Asked are the scopes that were asked for, and Granted those that were
	// given.
	Asked   []string `json:"asked,omitempty"`
	Granted []string `json:"granted,omitempty"`
	// Server is who issued it, and Client as whom.
	Server Server `json:"server"`
	Client Client `json:"client"`
}

// Server is how an authorization server is asked for a token. Printing or logging
// it shows its issuer alone.
type Server struct {
	// Issuer is its identifier, empty when only its endpoints are known.
	Issuer        string `json:"issuer,omitempty"`
	TokenEndpoint string `json:"token_endpoint"`
	// Resource is the identifier of the service that the token is for.
	Resource string `json:"resource,omitempty"`
	// ProofKey, in PKCS #8, proves with each request who a token was issued to
	// (RFC 9449); without one the token is good for whoever bears it.
	ProofKey []byte `json:"proof_key,omitempty"`
}

// String implements fmt.Stringer.
func (s Server) String() string { return s.Issuer }

// GoString implements fmt.GoStringer.
func (s Server) GoString() string { return fmt.Sprintf("auth.Server{Issuer: %q}", s.Issuer) }

// LogValue implements slog.LogValuer.
func (s Server) LogValue() slog.Value { return slog.StringValue(s.Issuer) }

// String implements fmt.Stringer.
func (Token) String() string { return hidden }

// GoString implements fmt.GoStringer.
func (Token) GoString() string { return hidden }

// LogValue implements slog.LogValuer.
func (Token) LogValue() slog.Value { return slog.StringValue(hidden) }

// expired reports whether the token is at its end, or nearly so.
func (t *Token) expired() bool {
	return !t.Expiry.IsZero() && time.Until(t.Expiry) < expiresEarly
}

// spent is what is left of a token that cannot be renewed: what it was good for, to
// ask for that again.
func (t *Token) spent() *Token {
	return &Token{Asked: t.Asked, Server: Server{Issuer: t.Server.Issuer}, Expiry: time.Now()}
}

// proving reports whether the token needs a proof with each request.
func (t *Token) proving() bool {
	return len(t.Server.ProofKey) > 0 && strings.EqualFold(t.Type, proofHeader)
}

// newToken keeps what an authorization server answered to a request for scopes.
func newToken(answer *oauth2.Token, asked []string, server Server, client Client) *Token {
	t := &Token{AccessToken: answer.AccessToken, RefreshToken: answer.RefreshToken, Type: answer.TokenType,
		Expiry: answer.Expiry, Asked: asked, Granted: asked, Server: server, Client: client}
	if scope, ok := answer.Extra("scope").(string); ok {
		t.Granted = strings.Fields(scope)
	}
	return t
}

// Store keeps tokens. It is called by many goroutines at once. Load returns nil
// without an error when there is no token. A token that was saved or loaded is
// never changed.
type Store interface {
	Load(ctx context.Context, key Key) (*Token, error)
	Save(ctx context.Context, key Key, token *Token) error
	Delete(ctx context.Context, key Key) error
}

// NewMemoryStore returns a Store that forgets everything with the process.
func NewMemoryStore() Store { return &memoryStore{tokens: map[Key]*Token{}} }

type memoryStore struct {
	mu     sync.RWMutex
	tokens map[Key]*Token
}

func (m *memoryStore) Load(_ context.Context, key Key) (*Token, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.tokens[key], nil
}

func (m *memoryStore) Save(_ context.Context, key Key, token *Token) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tokens[key] = token
	return nil
}

func (m *memoryStore) Delete(_ context.Context, key Key) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.tokens, key)
	return nil
}

// union returns the elements of all lists, each once, in order.
func union(lists ...[]string) []string {
	var out []string
	for _, list := range lists {
		for _, s := range list {
			if !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
	}
	return out
}

// within reports whether every element of part is in whole.
func within(part, whole []string) bool {
	return !slices.ContainsFunc(part, func(s string) bool { return !slices.Contains(whole, s) })
}
