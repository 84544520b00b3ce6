package redisstream

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/toolcrib/toolcrib/registry/stream"
)

// verdict says what became of a command.
type verdict int

const (
	answered verdict = iota // Redis carried it out or refused it
	unsent                  // Redis did not carry it out, and may do so soon
	broken                  // nobody knows
	unloaded                // Redis lacks the script
)

// passing are the refusals of a server that starts, changes its role, or is busy.
var passing = [...]string{"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "BUSY ", "ERR max number of clients"}

func judge(err error) verdict {
	if err == nil || errors.Is(err, redis.Nil) {
		return answered
	}
	var refused redis.Error
	if errors.As(err, &refused) {
		return judgeRefusal(refused.Error())
	}
	var dial *dialError
	if errors.As(err, &dial) || errors.Is(err, redis.ErrPoolTimeout) {
		return unsent
	}
	return broken
}

func judgeRefusal(text string) verdict {
	if strings.HasPrefix(text, "NOSCRIPT") {
		return unloaded
	}
	for _, prefix := range passing {
		if strings.HasPrefix(text, prefix) {
			return unsent
		}
	}
	return answered
}

// noPermission begins what Redis says where the ACL of a user does not permit a command, a key or a channel.
const noPermission = "NOPERM"

// denied returns what to permit where the ACL of the user does not permit a command, and err otherwise. For a command of
// a script Redis has other words, which differ from version to version.
func denied(args []any, err error) error {
	var refused redis.Error
	if err == nil || !errors.As(err, &refused) {
		return err
	}
	for _, sign := range [...]string{noPermission, "The user executing the script can't", "ACL failure in script"} {
		if strings.Contains(refused.Error(), sign) {
			return &denial{what: subjectOf(args), said: err}
		}
	}
	return err
}

// denial is a [stream.ErrForbidden].
type denial struct {
	what string // the command with its keys or channels
	said error
}

func (d *denial) Error() string {
	where := ""
	if !strings.HasPrefix(d.said.Error(), noPermission) { // Redis tells a script's client nothing of the command.
		where = ", where ACL LOG names the command"
	}
	return fmt.Sprintf("Redis does not permit this user: %s: %v; permit it with ACL SETUSER%s, or connect as another", d.what, d.said, where)
}

// Unwrap keeps what Redis said, beside the sentinel.
func (d *denial) Unwrap() []error { return []error{stream.ErrForbidden, d.said} }

// levelOf is how a fault is logged that nobody waits for: one that passes is a warning, a right that is missing an error.
func levelOf(err error) slog.Level {
	if errors.Is(err, stream.ErrForbidden) {
		return slog.LevelError
	}
	return slog.LevelWarn
}

// subjectOf names a command with its keys or channels, and without what it carries.
func subjectOf(args []any) string {
	last := 2
	switch name, _ := args[0].(string); name {
	case "EVALSHA", "EVAL":
		return fmt.Sprintf("a script on the keys %q, %q and %q", args[3:6]...)
	case "PUBSUB":
		last = 3
	case "XPENDING", "HSET", "PUBLISH", "SUBSCRIBE", "XREADGROUP":
	case "DEL":
		last = len(args)
	default:
		last = 1
		if name == "CLIENT" || name == "SCRIPT" {
			last = 2
		}
	}
	texts := make([]string, 0, last)
	for _, arg := range args[:min(last, len(args))] {
		texts = append(texts, fmt.Sprint(arg))
	}
	return strings.Join(texts, " ")
}

// denial says which stream or subject a command is about that the ACL does not permit.
func (c channels) denial(args []any, err error) stream.Denial {
	out := stream.Denial{Err: err}
	for _, arg := range args[:min(4, len(args))] { // behind a script and the count of its keys
		text, _ := arg.(string)
		if name, is := strings.CutPrefix(text, streamPrefix); is {
			out.Stream = name
			return out
		}
		channel, is := strings.CutPrefix(text, c.prefix)
		if !is {
			continue
		}
		kind, name, _ := strings.Cut(channel, ":")
		if kind == "respond" {
			_, name, _ = strings.Cut(name, ":") // behind who responds
		}
		if kind == "respond" || kind == "bus" {
			out.Subject = name
		}
		return out
	}
	return out
}

// forgotten reports whether Redis does not have the sink, because the data were lost or the sink was removed.
func forgotten(err error) bool {
	var refused redis.Error
	if !errors.As(err, &refused) {
		return false
	}
	text := refused.Error()
	return strings.Contains(text, "NOGROUP") || strings.Contains(text, "no such key") || strings.HasPrefix(text, "UNBLOCKED")
}

// outOfMemory reports whether Redis refused a write because its memory is full.
func outOfMemory(err error) bool {
	var refused redis.Error
	return errors.As(err, &refused) && strings.Contains(refused.Error(), "OOM")
}

// unavailable wraps what broke. Errors of the network name an address and no credential.
func unavailable(err error) error {
	if errors.Is(err, stream.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", stream.ErrUnavailable, err)
}

// refusal says what Redis answered instead of carrying out a command.
func refusal(err error) error {
	if err == nil || errors.Is(err, redis.Nil) {
		return nil
	}
	var refused redis.Error
	if errors.As(err, &refused) && !errors.Is(err, stream.ErrForbidden) {
		return fmt.Errorf("redisstream: Redis refused: %w", err)
	}
	return err
}
