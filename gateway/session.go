package gateway

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/toolcrib/toolcrib/api"
)

// SessionHeader is the header with which a caller names its session. Whoever
// sends the same name as the same user is the same session, over reconnects and
// restarts, and whatever the protocol.
const SessionHeader = api.SessionHeader

// sessionName is what a name may be.
var sessionName = newPattern(`^[A-Za-z0-9_.-]{1,128}$`)

// namedPrefix stands before names that callers chose, so that none can be that
// of a session of a protocol.
const namedPrefix = "named:"

// headerSession is namedSession for the name in the header of a request.
func headerSession(h http.Header, otherwise string) (string, error) {
	if len(h.Values(SessionHeader)) > 1 {
		return "", errors.New("expected one session, the request names several")
	}
	return namedSession(h.Get(SessionHeader), otherwise)
}

// namedSession returns the session of a name, and otherwise that of the protocol.
func namedSession(name, otherwise string) (string, error) {
	switch {
	case name == "":
		return otherwise, nil
	case !sessionName.MatchString(name):
		return "", fmt.Errorf("the name of a session: expected a match of %s", sessionName)
	}
	return namedPrefix + name, nil
}
