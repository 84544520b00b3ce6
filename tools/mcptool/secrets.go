package mcptool

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// minSecret is the length from which on a configured value is taken for a
// secret. Shorter ones are words such as "true" and "debug".
const minSecret = 6

// secrets replaces the values that a configuration gives a server wherever they
// come back in an error or on the child's standard error.
type secrets struct{ hide *strings.Replacer }

func newSecrets(c *Config) secrets {
	var values []string
	for _, v := range c.Env {
		values = append(values, v)
	}
	for _, v := range c.Headers {
		values = append(values, v)
		if _, credential, ok := strings.Cut(v, " "); ok {
			values = append(values, credential)
		}
	}
	if u, err := url.Parse(c.URL); err == nil {
		password, _ := u.User.Password()
		values = append(values, password, u.User.Username(), u.RawQuery)
		for _, vs := range u.Query() {
			values = append(values, vs...)
		}
	}
	return secrets{hide: replacerOf(values)}
}

// replacerOf hides longer values first, as one may contain another. It hides
// them as they stand inside a JSON string too.
func replacerOf(values []string) *strings.Replacer {
	values = slices.DeleteFunc(values, func(v string) bool { return len(v) < minSecret })
	for _, v := range slices.Clone(values) {
		if quoted := rawjson.Quote(v); string(quoted[1:len(quoted)-1]) != v {
			values = append(values, string(quoted[1:len(quoted)-1]))
		}
	}
	slices.SortFunc(values, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	if len(values) == 0 {
		return nil
	}
	var pairs []string
	for _, v := range slices.Compact(values) {
		pairs = append(pairs, v, "[hidden]")
	}
	return strings.NewReplacer(pairs...)
}

// clean returns text without the secrets.
func (s secrets) clean(text string) string {
	if s.hide == nil {
		return text
	}
	return s.hide.Replace(text)
}

// cleanRPC returns the server's error, or one without the secrets if it has any.
func (s secrets) cleanRPC(e *RPCError) *RPCError {
	message, data := s.clean(e.Message), s.clean(string(e.Data))
	if message == e.Message && data == string(e.Data) {
		return e
	}
	out := mcpwire.NewError(e.Code, message, nil)
	if data != "" && rawjson.Valid([]byte(data)) {
		out.Data = json.RawMessage(data)
	}
	return out
}
