package mcptool

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/tools"
)

func TestConfigErrors(t *testing.T) {
	t.Parallel()
	command := []string{"server"}
	for _, tc := range []struct {
		cfg  *Config
		says string
	}{
		{nil, "needs a configuration"},
		{&Config{Command: command}, `server name ""`},
		{&Config{Name: "a b", Command: command}, `server name "a b"`},
		{&Config{Name: "x"}, "neither command nor url"},
		{&Config{Name: "x", Command: []string{""}}, "command is empty"},
		{&Config{Name: "x", Command: command, URL: "http://h/mcp"}, "both command and url"},
		{&Config{Name: "x", TransportMode: "smtp", URL: "http://h/"}, `transport_mode "smtp": expected auto, stdio, streamable_http or sse`},
		{&Config{Name: "x", TransportMode: TransportSSE, Command: command}, "url is empty"},
		{&Config{Name: "x", TransportMode: TransportSSE, URL: "http://h/", Version: "2026-07-28"}, "not spoken over transport_mode sse"},
		{&Config{Name: "x", TransportMode: TransportStdio, URL: "http://h/"}, "stdio needs the program"},
		{&Config{Name: "x", URL: "ftp://user:hunter22@h/"}, "absolute http or https"},
		{&Config{Name: "x", URL: "/mcp"}, "absolute http or https"},
		{&Config{Name: "x", URL: "http://h/", Headers: map[string]string{"A: B": "v"}}, `"A: B" is no valid header`},
		{&Config{Name: "x", URL: "http://h/", Headers: map[string]string{"A": "hunter22\n"}}, `"A" is no valid header`},
		{&Config{Name: "x", Command: command, Env: map[string]string{"A=B": "v"}}, `"A=B" is no valid environment variable`},
		{&Config{Name: "x", Command: command, Version: "2023-01-01"}, `protocol version "2023-01-01": expected one of`},
		{&Config{Name: "x", Command: command, ClientInfo: json.RawMessage(`{}`)}, "client info"},
		{&Config{Name: "x", Command: command, LogLevel: "loud"}, `log level "loud"`},
	} {
		_, err := New(tc.cfg)
		if err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "hunter22") {
			t.Errorf("%+v: %v, want %q", tc.cfg, err, tc.says)
		}
	}
	_, err := New(&Config{Name: "x", URL: "nowhere", LogLevel: "loud"})
	if err == nil || !strings.Contains(err.Error(), "https URL") || !strings.Contains(err.Error(), "log level") {
		t.Errorf("not everything is said at once: %v", err)
	}
}

func TestTransportModes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		cfg  Config
		want TransportMode
	}{
		{Config{Command: []string{"a"}}, TransportStdio},
		{Config{URL: "https://h/mcp", TransportMode: TransportAuto}, TransportStreamableHTTP},
		{Config{Command: []string{"a"}, URL: "http://h", TransportMode: TransportStreamableHTTP}, TransportStreamableHTTP},
		{Config{URL: "http://h", TransportMode: TransportSSE}, TransportSSE},
	} {
		tc.cfg.Name = "x"
		s, err := New(&tc.cfg)
		if err != nil || s.cfg.TransportMode != tc.want {
			t.Errorf("%+v: %v", tc.cfg, err)
		}
	}
}

func TestFilter(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		include, exclude []string
		name             string
		want             bool
	}{
		{nil, nil, "anything", true},
		{[]string{"get_*"}, nil, "get_it", true},
		{[]string{"get_*"}, nil, "forget_it", false},
		{[]string{"get_*"}, nil, "GET_it", false},
		{[]string{"a?c"}, nil, "abc", true},
		{[]string{"a?c"}, nil, "ac", false},
		{[]string{"*"}, []string{"*/delete"}, "repo/delete", false},
		{nil, []string{"x(1)+"}, "x(1)+", false},
		{nil, []string{"x(1)+"}, "x11", true},
		{[]string{"a", "b"}, nil, "b", true},
		{[]string{""}, nil, "b", false},
	} {
		f := newFilter(&Config{Include: tc.include, Exclude: tc.exclude})
		if got := f.takes(tc.name); got != tc.want {
			t.Errorf("include %q, exclude %q: takes %q = %v", tc.include, tc.exclude, tc.name, got)
		}
	}
}

func TestPrefixes(t *testing.T) {
	t.Parallel()
	none, empty, own := NoPrefix, "", "w."
	for want, prefix := range map[string]*string{"x_": nil, "": &none, "w.": &own} {
		if got := (&Config{Name: "x", Prefix: prefix}).prefix(); got != want {
			t.Errorf("prefix %q, want %q", got, want)
		}
	}
	if got := (&Config{Name: "x", Prefix: &empty}).prefix(); got != "" {
		t.Errorf("empty prefix: %q", got)
	}
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	s, err := New(&Config{
		Name: "x", Command: []string{"a"}, Policy: tools.ToolPolicy{TimeoutMS: 1},
		ToolPolicies: map[string]tools.ToolPolicy{"slow tool": {TimeoutMS: 9}}, Loading: tools.LoadingDeferred,
		Options: []tools.DescriptorOption{tools.WithAuthScopes("s")},
	})
	if err != nil {
		t.Fatal(err)
	}
	slow, other := s.describe(definition{name: "slow tool"}).Tool, s.describe(definition{name: "other"}).Tool
	if slow.Policy.TimeoutMS != 9 || other.Policy.TimeoutMS != 1 || slow.Loading != tools.LoadingDeferred || len(other.AuthScopes) != 1 {
		t.Errorf("%+v\n%+v", slow, other)
	}
}

func TestSecretsAreHidden(t *testing.T) {
	t.Parallel()
	s := newSecrets(&Config{
		URL:     "https://user:pass%20word@h/mcp?key=k3y-value&v=1",
		Headers: map[string]string{"Authorization": "Bearer tok-en-1", "Accept": "a/b"},
		Env: map[string]string{"A": "tok-en-1-longer", "DEBUG": "true", "PIN": "x-7",
			"KEY": "-----BEGIN KEY-----\nMIIBVwIBADANBg\n-----END KEY-----"},
	})
	for text, want := range map[string]string{
		"sent Bearer tok-en-1":         "sent [hidden]",
		"token=tok-en-1":               "token=[hidden]",
		"tok-en-1-longer":              "[hidden]",
		"GET /mcp?key=k3y-value&v=1":   "GET /mcp?[hidden]",
		"bad key k3y-value":            "bad key [hidden]",
		"password 'pass word' refused": "password '[hidden]' refused",
		"a/b is true":                  "a/b is true",
		"MIIBVwIBADANBg":               "[hidden]",
		"pin x-7 of x-77":              "pin [hidden] of x-77",
		"base64 dG9rLWVuLTE":           "base64 [hidden]",
	} {
		if got := s.clean(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
