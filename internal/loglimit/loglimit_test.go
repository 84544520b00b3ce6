package loglimit_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcrib/toolcrib/internal/loglimit"
)

func TestLinesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		log := loglimit.New(slog.New(slog.NewTextHandler(&b, nil)))
		if loglimit.New(log) != log {
			t.Error("a logger that is bounded is bounded again")
		}
		again := log.With("toolset", "t").WithGroup("g")
		for i := range loglimit.Most {
			log.Warn("one", "n", i)
			again.Warn("one", "n", i)
			log.Error(fmt.Sprintf("another %d", i%2))
		}
		if n := strings.Count(b.String(), "msg=one"); n != loglimit.Most {
			t.Errorf("%d lines of one message", n)
		}
		if n := strings.Count(b.String(), "another"); n != loglimit.Most {
			t.Errorf("%d lines of others", n)
		}
		if n := strings.Count(b.String(), "more_left_out=true"); n != 1 {
			t.Errorf("%d lines say that more are left out", n)
		}
		b.Reset()
		time.Sleep(loglimit.Window)
		again.Warn("one")
		log.Warn("one")
		if got := b.String(); strings.Count(got, "msg=one") != 2 || strings.Count(got, "left_out=100") != 1 {
			t.Errorf("after the window:\n%s", got)
		}
	})
}

func TestNilIsSilent(t *testing.T) { loglimit.New(nil).Error("nobody hears it") }

func TestManyMessages(t *testing.T) {
	var b bytes.Buffer
	log := loglimit.New(slog.New(slog.NewTextHandler(&b, nil)))
	for i := range 5000 {
		log.Info(fmt.Sprint("message ", i))
	}
	if n := strings.Count(b.String(), "\n"); n != 5000 {
		t.Errorf("%d lines", n)
	}
}
