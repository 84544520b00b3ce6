package mcptool

import (
	"encoding/json"
	"errors"
	"net/url"
	"strings"

	"github.com/toolcrib/toolcrib/internal/mask"
	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// secrets replaces the values that a configuration gives a server, and what
// Config.Hide knows beside them, wherever they come back in an error, a name, or
// on the child's standard error.
type secrets struct {
	hide *mask.Mask
	more func(string) string // or nil
}

func newSecrets(c *Config) secrets {
	var values []string
	for _, v := range c.Env {
		values = append(values, v)
	}
	for name, v := range c.Headers {
		if !strings.EqualFold(name, "Accept") && !strings.EqualFold(name, "User-Agent") {
			values = append(values, v)
		}
	}
	if u, err := url.Parse(c.URL); err == nil {
		password, _ := u.User.Password()
		values = append(values, password, u.User.Username(), u.RawQuery)
		for _, vs := range u.Query() {
			values = append(values, vs...)
		}
	}
	return secrets{hide: mask.New(values...), more: c.Hide}
}

// clean returns text without the secrets.
func (s secrets) clean(text string) string {
	text = s.hide.Clean(text)
	if s.more != nil {
		text = s.more(text)
	}
	return text
}

// cleanError returns err, or an error in its place whose text has no secret and
// that is what err is.
func (s secrets) cleanError(err error) error {
	text := err.Error()
	if clean := s.clean(text); clean != text {
		return &cleanedError{clean, err}
	}
	return err
}

// A cleanedError answers errors.Is as the error does that it stands for, and
// does not lead to it.
type cleanedError struct {
	text string
	of   error
}

func (e *cleanedError) Error() string { return e.text }

func (e *cleanedError) Is(target error) bool { return errors.Is(e.of, target) }

// cleanRPC returns the server's error, or one without the secrets, and without the
// members that the protocol does not name, if it has any.
func (s secrets) cleanRPC(e *RPCError) *RPCError {
	message, data := s.clean(e.Message), s.clean(string(e.Data))
	if raw := string(e.Raw()); message == e.Message && data == string(e.Data) && s.clean(raw) == raw {
		return e
	}
	out := mcpwire.NewError(e.Code, message, nil)
	if data != "" && rawjson.Valid([]byte(data)) {
		out.Data = json.RawMessage(data)
	}
	return out
}
