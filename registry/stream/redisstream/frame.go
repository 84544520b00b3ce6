package redisstream

import (
	"encoding/binary"
	"errors"

	"github.com/toolcrib/toolcrib/registry/stream"
)

// errFrame says that somebody else published on a channel of ours.
var errFrame = errors.New("redisstream: not a message of the bus")

// frame is what is published on a channel: a message, and for a question the channel of the answer and its number.
//
// On the wire stand the inbox, the number and the name of the message, each preceded by its length as an unsigned
// varint, and then the payload.
type frame struct {
	inbox   string
	number  string
	message stream.Message
}

func (f frame) encode() []byte {
	b := make([]byte, 0, len(f.inbox)+len(f.number)+len(f.message.Name)+len(f.message.Payload)+3*binary.MaxVarintLen32)
	for _, field := range []string{f.inbox, f.number, f.message.Name} {
		b = binary.AppendUvarint(b, uint64(len(field)))
		b = append(b, field...)
	}
	return append(b, f.message.Payload...)
}

// decodeFrame reads what encode wrote. Whatever came over the wire, it returns a frame or errFrame.
func decodeFrame(text string) (frame, error) {
	var f frame
	rest := []byte(text)
	for _, field := range []*string{&f.inbox, &f.number, &f.message.Name} {
		length, n := binary.Uvarint(rest)
		if n <= 0 || length > uint64(len(rest)-n) {
			return frame{}, errFrame
		}
		*field = string(rest[n : n+int(length)])
		rest = rest[n+int(length):]
	}
	f.message.Payload = rest
	return f, nil
}
