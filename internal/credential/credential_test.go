package credential_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/internal/credential"
)

func TestCheck(t *testing.T) {
	secret := credential.Fixed("s")
	for want, c := range map[string]credential.Credential{
		"no secret":                       {Kind: credential.Bearer},
		"at most one of":                  {Kind: credential.APIKey, Header: "a", Query: "b", Secret: secret},
		`"a b" is not a header name`:      {Kind: credential.APIKey, Header: "a b", Secret: secret},
		`"a;b" is not a cookie name`:      {Kind: credential.Cookie, Cookie: "a;b", Secret: secret},
		"kind api_key needs header":       {Kind: credential.APIKey, Secret: secret},
		"kind bearer is sent in a header": {Kind: credential.Bearer, Query: "q", Secret: secret},
		"kind basic is sent in a header":  {Kind: credential.Basic, Cookie: "q", Secret: secret},
		"kind cookie needs cookie":        {Kind: credential.Cookie, Header: "h", Secret: secret},
		`unknown kind "magic"`:            {Kind: "magic", Secret: secret},
	} {
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	for _, c := range []*credential.Credential{
		nil,
		{Kind: credential.Bearer, Secret: secret},
		{Kind: credential.Basic, Header: "X-Auth", Secret: secret},
		{Kind: credential.APIKey, Query: "a b", Secret: secret},
		{Kind: credential.Cookie, Cookie: "sid", Secret: secret},
	} {
		if err := c.Check(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func request(target string) *http.Request {
	req := httptest.NewRequest(http.MethodGet, target, nil)
	req.Header.Set("Cookie", "a=b")
	return req
}

func TestApply(t *testing.T) {
	header := func(name string) func(*http.Request) string {
		return func(r *http.Request) string { return r.Header.Get(name) }
	}
	query := func(r *http.Request) string { return r.URL.RawQuery }
	for name, c := range map[string]struct {
		credential credential.Credential
		sent       func(*http.Request) string
		want       string
		hidden     []string
	}{
		"bearer":           {credential.Credential{Kind: credential.Bearer}, header("Authorization"), "Bearer u:p +", []string{"u:p +"}},
		"bearer elsewhere": {credential.Credential{Kind: credential.Bearer, Header: "X-Auth"}, header("X-Auth"), "Bearer u:p +", []string{"u:p +"}},
		"basic":            {credential.Credential{Kind: credential.Basic}, header("Authorization"), "Basic dTpwICs=", []string{"u:p +", "p +"}},
		"key in a header":  {credential.Credential{Kind: credential.APIKey, Header: "X-Key"}, header("X-Key"), "u:p +", []string{"u:p +"}},
		"key in the query": {credential.Credential{Kind: credential.APIKey, Query: "k y"}, query, "x=%2f+&k%20y=u%3Ap%20%2B", []string{"u:p +"}},
		"key in a cookie":  {credential.Credential{Kind: credential.APIKey, Cookie: "c"}, header("Cookie"), "a=b; c=u:p +", []string{"u:p +"}},
		"cookie":           {credential.Credential{Kind: credential.Cookie, Cookie: "c"}, header("Cookie"), "a=b; c=u:p +", []string{"u:p +"}},
	} {
		c.credential.Secret = credential.Fixed("u:p +")
		req := request("http://a.example/?x=%2f+&k+y=old")
		hidden, err := c.credential.Apply(req)
		if got := c.sent(req); err != nil || got != c.want || !slices.Equal(hidden, c.hidden) {
			t.Errorf("%s: sent %q, hides %q, %v", name, got, hidden, err)
		}
	}
}

func TestApplyNothing(t *testing.T) {
	var none *credential.Credential
	req := request("http://a.example/?x")
	hidden, err := none.Apply(req)
	if err != nil || hidden != nil || len(req.Header) != 1 || req.URL.RawQuery != "x" {
		t.Errorf("%v, %v, %v", hidden, err, req)
	}
}

func TestUnusableSecrets(t *testing.T) {
	for want, c := range map[string]*credential.Credential{
		"empty":             {Kind: credential.Bearer, Secret: credential.Fixed("")},
		"a line break":      {Kind: credential.Bearer, Secret: credential.Fixed("CANARY\r\nX: y")},
		"control character": {Kind: credential.Cookie, Cookie: "c", Secret: credential.Fixed("CANARY\x00")},
		"not available: no file": {Kind: credential.Bearer,
			Secret: func(context.Context) (string, error) { return "", errors.New("no file") }},
	} {
		req := request("http://a.example/")
		_, err := c.Apply(req)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "CANARY") || len(req.Header) != 1 {
			t.Errorf("%s: %v, %v", want, err, req.Header)
		}
	}
}
