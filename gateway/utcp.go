package gateway

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/httptool"
)

const kindUTCP = "utcp"

func (s *specs) utcp(u *UTCP, at string) {
	cfg := httptool.UTCPConfig{
		Name:      u.Name,
		Manual:    s.cfg.location(u.Manual),
		ServerURL: u.ServerURL,
		Headers:   s.secrets(u.Headers, at+".headers"),
		Include:   u.Include,
		Exclude:   u.Exclude,
		Prefix:    u.Prefix,
		AllowText: u.AllowText,
		Policy:    u.Policy.toolPolicy(),
		Responses: responses(u.Responses),
		Network:   s.network(u.AllowPrivate),
	}
	settings := utcpSettings{UTCP: *u, headers: cfg.Headers, manual: stamp(cfg.Manual)}
	if u.Auth != nil {
		settings.secret = s.secret(u.Auth.Secret, at+".auth.secret")
		cfg.Auth = s.auth(u.Auth)
	}
	if _, err := httptool.NewUTCP(cfg); err != nil {
		s.faults = append(s.faults, s.cfg.faultAt(at, err.Error(), ""))
		return
	}
	spec := sourceSpec{name: u.Name, kind: kindUTCP, at: at, document: at + ".manual", settings: settings, loading: u.LoadingMode,
		prefixes: prefixesOf(u.Prefix, u.Name), unmatched: unmatchedPatterns,
		open: func(*slog.Logger) (tools.ToolProvider, error) { return httptool.NewUTCP(cfg) }}
	if !strings.Contains(cfg.Manual, "://") {
		spec.check = checkUTCP(cfg)
	}
	s.list = append(s.list, spec)
}

func checkUTCP(cfg httptool.UTCPConfig) func(context.Context) error {
	return func(ctx context.Context) error {
		p, err := httptool.NewUTCP(cfg)
		if err != nil {
			return err
		}
		return errors.Join(p.Check(ctx), p.Close(ctx))
	}
}

// utcpSettings is what a UTCP source is made from, with its references resolved
// and the state of its manual if that is a file.
type utcpSettings struct {
	UTCP
	headers map[string]string
	secret  string
	manual  fileStamp
}
