package mcpserver

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// taskOwner is whose a task is: nobody else can use it.
type taskOwner struct {
	principal string
	identity  identity.Identity
}

func taskOwnerOf(ctx context.Context, r *mcpwire.Request) taskOwner {
	id, _ := identity.From(ctx)
	return taskOwner{r.Session.Principal(), id}
}

// A taskSeal makes the names by which clients know tasks. A name says which tool
// began the task and what the source calls it, behind a mark that holds for the
// owner alone, in the process that made it.
type taskSeal struct{ key [32]byte }

func newTaskSeal() *taskSeal {
	s := &taskSeal{}
	_, _ = rand.Read(s.key[:]) // never fails
	return s
}

func (s *taskSeal) mark(o taskOwner, tool, id string) string {
	h := hmac.New(sha256.New, s.key[:])
	bound, _ := json.Marshal([]string{o.principal, o.identity.TenantID, o.identity.UserID, o.identity.SessionID, tool, id}) // texts always encode
	h.Write(bound)
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:18])
}

// name returns the name of a task for its owner.
func (s *taskSeal) name(o taskOwner, tool, id string) string {
	return s.mark(o, tool, id) + ":" + tool + ":" + id
}

// open returns the tool that began a task of the owner and the source's id, or
// false for what is no name of a task of the owner.
func (s *taskSeal) open(o taskOwner, name string) (tool, id string, ok bool) {
	mark, rest, _ := strings.Cut(name, ":")
	tool, id, ok = strings.Cut(rest, ":")
	return tool, id, ok && hmac.Equal([]byte(mark), []byte(s.mark(o, tool, id)))
}

// A taskVoice puts the client's name of a task in the place of the source's,
// wherever a message of the source names it.
type taskVoice struct {
	seal  *taskSeal
	owner taskOwner
	tool  string
	// id is the one task that is spoken of. Empty means any: the source has just
	// begun one.
	id string
}

// taskPaths are where a message names its task.
func taskPaths() [][]string {
	const related = "io.modelcontextprotocol/related-task"
	return [][]string{{"taskId"}, {"task", "taskId"}, {"_meta", related, "taskId"}, {"result", "_meta", related, "taskId"}}
}

// say returns the message with the client's name. A task that is not the one
// that is spoken of keeps the name that is of no use to the client.
func (v *taskVoice) say(message json.RawMessage) json.RawMessage {
	if v == nil || rawjson.KindOf(message) != rawjson.KindObject {
		return message
	}
	for _, path := range taskPaths() {
		raw, ok := rawjson.Get(message, path...)
		if !ok {
			continue
		}
		id, ok := rawjson.Unquote(raw)
		if !ok || v.id != "" && v.id != id {
			continue
		}
		if out, err := setIn(message, path, rawjson.Quote(v.seal.name(v.owner, v.tool, id))); err == nil {
			message = out
		}
	}
	return message
}

// setIn sets a member of an object that is there, below others.
func setIn(obj json.RawMessage, path []string, value json.RawMessage) (json.RawMessage, error) {
	if len(path) == 1 {
		return rawjson.Set(obj, path[0], value)
	}
	inner, _ := rawjson.Get(obj, path[0])
	inner, err := setIn(inner, path[1:], value)
	if err != nil {
		return nil, err
	}
	return rawjson.Set(obj, path[0], inner)
}
