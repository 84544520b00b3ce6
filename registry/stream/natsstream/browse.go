package natsstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolcrib/toolcrib/registry/stream"
)

var (
	_ stream.Browser   = (*queue)(nil)
	_ stream.Annotator = (*queue)(nil)
)

// noteHeader holds the note beside an event.
const noteHeader = "Toolcrib-Note"

// AddNoted implements [stream.Annotator].
func (q *queue) AddNoted(ctx context.Context, event string, payload []byte, note string) (string, error) {
	if err := q.client.checkSend("event", event, payload); err != nil {
		return "", err
	}
	if err := stream.CheckNote(note); err != nil {
		return "", err
	}
	msg := &nats.Msg{Subject: q.subject + Token(event), Data: payload}
	if note != "" { // For which headroom is enough.
		msg.Header = nats.Header{noteHeader: {note}}
	}
	return q.publish(ctx, msg)
}

// Browse implements [stream.Browser].
func (q *queue) Browse(ctx context.Context, after string, limit int) ([]stream.Kept, error) {
	last := uint64(0)
	if after != "" {
		var err error
		if last, err = strconv.ParseUint(after, 10, 64); err != nil {
			return nil, fmt.Errorf("%w: %.40q is the ID of no event", stream.ErrInvalid, after)
		}
	}
	var list []stream.Kept
	for len(list) < limit {
		var found *stream.Kept
		err := q.client.retryOn(ctx, q.inside, func(ctx context.Context) (err error) {
			found, last, err = q.next(ctx, last)
			return err
		})
		if err != nil || found == nil {
			return list, err
		}
		list = append(list, *found)
	}
	return list, nil
}

// next returns the first event that comes after a sequence, with its own, or nil.
func (q *queue) next(ctx context.Context, after uint64) (*stream.Kept, uint64, error) {
	inside, err := q.client.js.Stream(ctx, q.inside)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, after, nil
	}
	if err != nil {
		return nil, after, q.client.refused(err)
	}
	subject := ">" // of a stream of its own all are
	if q.isShort() {
		subject = q.subject + "*"
	}
	m, err := inside.GetMsg(ctx, after+1, jetstream.WithGetMsgSubject(subject))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, after, nil
	}
	if err != nil {
		return nil, after, q.client.refused(err)
	}
	kept := &stream.Kept{ID: strconv.FormatUint(m.Sequence, 10), Name: eventName(m.Subject), Payload: m.Data, Added: m.Time}
	if note := m.Header.Get(noteHeader); stream.CheckNote(note) == nil {
		kept.Note = note
	}
	return kept, m.Sequence, nil
}

// eventName reads the name of an event from its subject.
func eventName(subject string) string {
	token := subject[strings.LastIndexByte(subject, '.')+1:]
	if name, err := FromToken(token); err == nil {
		return name
	}
	return token // Somebody else published it.
}
