package gateway

import "fmt"

// notAvailable is what a fault says of a key whose feature this version does
// not have.
const notAvailable = "not available in this version"

// Unavailable returns what the configuration asks for and this version does
// not have, as ConfigErrors that wrap ErrUnavailable, or nil. Open refuses it;
// Parse does not, so that one file serves several versions.
func (c *Config) Unavailable() error { return c.unavailable().sorted() }

func (c *Config) unavailable() ConfigErrors {
	l := &later{cfg: c}
	l.entries(c.Tools.Entries)
	return l.faults
}

// later collects what comes with a later version.
type later struct {
	cfg    *Config
	faults ConfigErrors
}

func (l *later) entries(entries []Entry) {
	for i, e := range entries {
		at := fmt.Sprintf("tools.entries[%d]", i)
		if a := e.Approval; a != nil {
			l.when(a.Policy == approvalGated, at+".approval.policy", approvalGated+" is ")
			l.when(len(a.RequireTags) > 0, at+".approval.require_tags", "")
		}
		l.when(e.OAuth != nil, at+".oauth", "")
	}
}

func (l *later) when(asked bool, path, subject string) {
	if asked {
		l.refuse(path, subject)
	}
}

func (l *later) refuse(path, subject string) {
	e := l.cfg.faultAt(path, subject+notAvailable, "")
	e.cause = ErrUnavailable
	l.faults = append(l.faults, e)
}
