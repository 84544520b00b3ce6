package registry

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// Workers on standby are listed as long as they ask, and no more of them than the
// bound; those that ask no more make room.
func TestStandbyIsListedWhileItAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := (&Registry{}).newToolset("demo", agreement{})
		for i := range maxStandby + 10 {
			ts.standby(&Announcement{Toolset: "demo", Instance: fmt.Sprint("w", i)}, "it waits")
		}
		if n := len(ts.state().Standby); n != maxStandby {
			t.Errorf("%d workers are listed", n)
		}
		began := time.Now()
		time.Sleep(standbyGone)
		ts.standby(&Announcement{Toolset: "demo", Instance: "w7"}, "it waits on")
		time.Sleep(time.Second)
		ts.standby(&Announcement{Toolset: "demo", Instance: "late", Version: "2", Host: "there"}, "it waits")
		list := ts.state().Standby
		if len(list) != 2 || list[0] != (StandbyState{Instance: "late", Version: "2", Host: "there", Since: time.Now(), Asked: time.Now(), Reason: "it waits"}) ||
			list[1] != (StandbyState{Instance: "w7", Since: began, Asked: time.Now().Add(-time.Second), Reason: "it waits on"}) {
			t.Errorf("listed are %+v", list)
		}
		ts.reg.opts.StaleAfter = time.Minute
		ts.enter(&Announcement{Toolset: "demo", Instance: "late"})
		if list := ts.state().Standby; len(list) != 1 || list[0].Instance != "w7" {
			t.Errorf("with one that serves, listed are %+v", list)
		}
	})
}
