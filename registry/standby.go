package registry

import (
	"slices"
	"strings"
	"time"
)

// standbyPause is how long a worker on standby waits before it asks again.
const standbyPause = 500 * time.Millisecond

// standbyGone is after what silence a worker on standby is no longer listed. Each time
// that it asks only one of several registries hears of it.
const standbyGone = 20 * standbyPause

// maxStandby bounds the workers on standby of a toolset that are listed.
const maxStandby = 1000

// StandbyState is a worker that takes no calls yet.
type StandbyState struct {
	Instance string `json:"instance"`
	Version  string `json:"version,omitempty"`
	Host     string `json:"host,omitempty"`
	// Since is when it announced itself, and Asked when it last asked to serve.
	Since time.Time `json:"since"`
	Asked time.Time `json:"asked"`
	// Reason says to a person why it waits.
	Reason string `json:"reason"`
}

func standby(why string) Admission {
	return Admission{Status: StatusStandby, Message: why, RetryAfterMS: standbyPause.Milliseconds()}
}

// standby has the worker wait, and lists it among those that do.
func (ts *toolset) standby(a *Announcement, why string) Admission {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	now := time.Now()
	since := now
	if s, known := ts.waiting[a.Instance]; known {
		since = s.Since
	} else if len(ts.waiting) >= maxStandby {
		ts.forgetWaiting()
	}
	if len(ts.waiting) < maxStandby || since != now {
		ts.waiting[a.Instance] = StandbyState{Instance: a.Instance, Version: a.Version, Host: a.Host, Since: since, Asked: now, Reason: why}
	}
	return standby(why)
}

// standbyInChange is standby for a worker whose contract may be the one that is to be
// served, so that it does not end if it serves.
func (ts *toolset) standbyInChange(a *Announcement, why string) Admission {
	said := ts.standby(a, why)
	said.Changing = true
	return said
}

// forgetWaiting drops the workers on standby that ask no more. The caller holds the
// lock.
func (ts *toolset) forgetWaiting() {
	for id, s := range ts.waiting {
		if time.Since(s.Asked) > standbyGone {
			delete(ts.waiting, id)
		}
	}
}

// onStandby lists the workers that wait, sorted by their ids. The caller holds the
// lock.
func (ts *toolset) onStandby() []StandbyState {
	ts.forgetWaiting()
	list := make([]StandbyState, 0, len(ts.waiting))
	for _, s := range ts.waiting {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b StandbyState) int { return strings.Compare(a.Instance, b.Instance) })
	return list
}
