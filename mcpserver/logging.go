package mcpserver

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// levels are the words for the severity of a log message, from the least on.
func levels() []string {
	return []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
}

const (
	// defaultLevel is what a session gets that has not set a level.
	defaultLevel = 1 // info
	// noLevel is above every level.
	noLevel = 8
)

func levelOf(word string) (int32, bool) {
	i := slices.Index(levels(), word)
	return int32(i), i >= 0
}

// wantedLevel is the level from which the client of a request wants messages:
// that of the session or, in the stateless era, of the request, where none
// means no messages.
func wantedLevel(r *mcpwire.Request) int32 {
	if c := clientOf(r.Session); c != nil {
		return c.level.Load()
	}
	if level, ok := levelOf(r.LogLevel); ok {
		return level
	}
	return noLevel
}

// setLevel answers logging/setLevel.
func setLevel(r *mcpwire.Request) (json.RawMessage, error) {
	v, _ := rawjson.Get(r.Params, "level")
	word, _ := rawjson.Unquote(v)
	level, ok := levelOf(word)
	if !ok {
		return nil, mcpwire.Errorf(mcpwire.CodeInvalidParams, `logging/setLevel: "level" must be one of %s`, strings.Join(levels(), ", "))
	}
	c := clientOf(r.Session)
	if c == nil {
		return nil, mcpwire.Errorf(mcpwire.CodeMethodNotFound, "method not found: %q", r.Method)
	}
	c.level.Store(level)
	return nil, nil
}
