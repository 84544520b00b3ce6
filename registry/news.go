package registry

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/toolcrib/toolcrib/registry/stream"
)

// news is what one registry tells the others of a worker.
type news struct {
	Process string    `json:"process"`
	At      time.Time `json:"at"`
	Announcement
}

// sealed is news with the proof that they come from a registry of this store.
type sealed struct {
	News json.RawMessage `json:"news"`
	MAC  string          `json:"mac"`
}

// spread tells the other registries of a worker.
func (r *Registry) spread(ctx context.Context, name string, a *Announcement) {
	body, err := json.Marshal(news{Process: r.process, At: time.Now(), Announcement: *a})
	if err != nil {
		return // Texts and numbers always encode.
	}
	payload, err := json.Marshal(sealed{News: body, MAC: r.prove("news", name, string(body))})
	if err == nil {
		_ = r.client.Publish(ctx, shared(r.opts.Namespace, "news"), stream.Message{Name: name, Payload: payload})
	}
}

var errForged = errors.New("they are not signed by a registry of this store")

// unseal reads news. Others than registries of this store may reach the backend.
func (r *Registry) unseal(m stream.Message) (*news, error) {
	var s sealed
	if err := decode(m.Payload, &s); err != nil {
		return nil, err
	}
	if !hmac.Equal([]byte(s.MAC), []byte(r.prove("news", m.Name, string(s.News)))) {
		return nil, errForged
	}
	var n news
	if err := decode(s.News, &n); err != nil {
		return nil, err
	}
	if time.Since(n.At).Abs() > proofAge {
		return nil, errors.New("they are old, or the clocks of gateways are too far apart")
	}
	return &n, nil
}

// workerToken is what proves to a worker that a registry asks it to end. It is the
// same in all registries of a store.
func (r *Registry) workerToken(toolset, instance string) string {
	return r.prove("worker", toolset, instance)
}

// prove returns the HMAC of texts with the store's secret.
func (r *Registry) prove(parts ...string) string {
	h := hmac.New(sha256.New, []byte(r.secret))
	h.Write([]byte(hashed(parts...)))
	return hex.EncodeToString(h.Sum(nil))
}
