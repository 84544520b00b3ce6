package httpfault_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/internal/httpfault"
)

func TestBadCertificate(t *testing.T) {
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	gone := httptest.NewTLSServer(http.NotFoundHandler())
	gone.Close()
	client := &http.Client{Transport: &http.Transport{}}
	for name, c := range map[string]struct {
		url  string
		want bool
	}{
		"unknown authority": {secure.URL, true},
		"nobody there":      {gone.URL, false},
	} {
		resp, err := client.Get(c.url)
		if err == nil {
			_ = resp.Body.Close()
			t.Fatalf("%s: it answered", name)
		}
		if got := httpfault.BadCertificate(err); got != c.want {
			t.Errorf("%s: got %v of %v", name, got, err)
		}
		if text := httpfault.BareText(err); strings.Contains(text, c.url) {
			t.Errorf("%s: the URL is in %q", name, text)
		}
	}
	if err := fmt.Errorf("no TLS: %w", tls.RecordHeaderError{Msg: "garbage"}); !httpfault.BadCertificate(err) {
		t.Errorf("got false of %v", err)
	}
}

func TestBareText(t *testing.T) {
	within := &url.Error{Op: "Get", URL: "https://a.example/?key=CANARY", Err: errors.New("reset")}
	for _, err := range []error{
		errors.New("reset"), within, fmt.Errorf("again: %w", within),
		&url.Error{Op: "Post", URL: "https://CANARY", Err: within},
	} {
		if got := httpfault.BareText(err); got != "reset" {
			t.Errorf("got %q of %v", got, err)
		}
	}
}

func TestEnded(t *testing.T) {
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	left, leave := context.WithCancel(t.Context())
	leave()
	if got := httpfault.Ended(late); !strings.Contains(got, "time limit") {
		t.Errorf("late: %q", got)
	}
	if got := httpfault.Ended(left); !strings.Contains(got, "cancelled") {
		t.Errorf("left: %q", got)
	}
}
