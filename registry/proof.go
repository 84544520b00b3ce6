package registry

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// Proof shows that whoever announces a worker holds its toolset's key, without
// telling the key.
type Proof struct {
	Time time.Time `json:"time"`
	// MAC is the HMAC-SHA256, in hex, of toolset, instance, the contract's
	// fingerprint, or "leave" in a goodbye, and the time.
	MAC string `json:"mac"`
}

// proofAge is how far the clocks of a worker and a registry may be apart.
const proofAge = 5 * time.Minute

// Sign puts a proof on the announcement.
func (a *Announcement) Sign(key []byte) error {
	now := time.Now().UTC().Truncate(time.Second)
	mac, err := a.mac(key, now)
	if err != nil {
		return err
	}
	a.Proof = &Proof{Time: now, MAC: mac}
	return nil
}

func (a *Announcement) mac(key []byte, at time.Time) (string, error) {
	fp := ""
	switch {
	case a.Leaving:
		fp = MessageLeave
	case a.Contract != nil:
		var err error
		if fp, err = a.Contract.Fingerprint(); err != nil {
			return "", err
		}
	}
	h := hmac.New(sha256.New, key)
	h.Write([]byte(hashed(a.Toolset, a.Instance, fp, at.UTC().Format(time.RFC3339))))
	return hex.EncodeToString(h.Sum(nil)), nil
}

// KeyGrant is the key that a toolset's workers hold, and what they may be then.
type KeyGrant struct {
	Key []byte
	// Previous is a key that is taken too, while workers change to another.
	Previous []byte
	Grant    Grant
}

// AdmitKeys admits the workers of the toolsets that are listed, if they prove to
// hold the toolset's key. A toolset with an empty key is admitted without one.
func AdmitKeys(toolsets map[string]KeyGrant) Admit {
	return func(_ context.Context, a *Announcement) (Grant, error) {
		known, ok := toolsets[a.Toolset]
		if !ok {
			return Grant{}, fmt.Errorf("toolset %q is not among those that this gateway admits", a.Toolset)
		}
		if len(known.Key) == 0 {
			return known.Grant, nil
		}
		err := a.prove(known.Key)
		if err != nil && len(known.Previous) > 0 && a.prove(known.Previous) == nil {
			err = nil
		}
		return known.Grant, err
	}
}

func (a *Announcement) prove(key []byte) error {
	if a.Proof == nil {
		return fmt.Errorf("toolset %q needs its key, and the worker has none", a.Toolset)
	}
	if off := time.Since(a.Proof.Time).Abs(); off > proofAge {
		return fmt.Errorf("the clocks of worker and gateway are %s apart; at most %s are allowed", off.Round(time.Second), proofAge)
	}
	mac, err := a.mac(key, a.Proof.Time)
	if err != nil {
		return err
	}
	if !hmac.Equal([]byte(mac), []byte(a.Proof.MAC)) {
		return errors.New("the worker's key is not that of the toolset")
	}
	return nil
}
