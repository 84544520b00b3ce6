package mcpwire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// A LongResult is the result of a request that is too long for memory. It waits
// on the disk, and is gone when the function that it is given to has returned.
type LongResult struct {
	// Skeleton is the result without its Parts. Where a part was, there is an
	// empty string or, for structuredContent, null. When the result is one part
	// the skeleton has those of its members that are short.
	Skeleton json.RawMessage
	// Parts are the long values of the result, in their order: strings in content
	// blocks, and structured content. A result that is long without such values is
	// one part as a whole.
	Parts []LongPart
	// Size is how many bytes the result has.
	Size int64

	message  *spool
	from, to int64
}

// A LongPart is a value of a [LongResult].
type LongPart struct {
	// List is "content", or "contents" as in results about resources: where the
	// block is that the part is in. It is empty for a part that is in no block.
	List string
	// Block is the index in the list; -1 for a part that is in no block.
	Block int
	// Key says which value of the block it is: "text", "data", "blob",
	// "resource/text" or "resource/blob". It is "structuredContent" or, for the
	// whole result, "" otherwise.
	Key string

	from, to int64
}

// Size is how many bytes the JSON of the part has.
func (p LongPart) Size() int64 { return p.to - p.from }

// JSON reads a part as it stands in the message.
func (r *LongResult) JSON(p LongPart) io.Reader { return r.message.section(p.from, p.to) }

// Text reads the text of a part that is in a block.
func (r *LongResult) Text(p LongPart) io.Reader {
	return newUnquoter(r.message.section(p.from+1, p.to-1))
}

// Whole returns the result as one part.
func (r *LongResult) Whole() LongPart { return LongPart{Block: -1, from: r.from, to: r.to} }

// readLong finds the parts of a message on the disk. It returns nil for what is no
// plain result, and errMalformed for what is no message.
func readLong(p *spool) (*LongResult, error) {
	s := newLongScanner(p.section(0, p.size))
	err := s.frame()
	if errors.Is(err, errHeavy) || err == nil && s.ambiguous {
		s = newLongScanner(p.section(0, p.size))
		s.heads = true
		err = s.frame()
	}
	if err != nil || s.otherwise {
		return nil, err
	}
	r := &LongResult{Skeleton: s.skeleton, Parts: s.parts, Size: s.to - s.from, message: p, from: s.from, to: s.to}
	if s.heads {
		r.Parts = []LongPart{r.Whole()}
	}
	return r, nil
}

// spill opens a spool for a message that becomes too long, or returns nil when
// no call waits for one.
func (c *Client) spill() *spool {
	if !c.wantsLong() {
		return nil
	}
	return c.opts.Scratch.begin()
}

func (c *Client) wantsLong() bool { return c.opts.Scratch != nil && c.calls.long.Load() > 0 }

// receiveLong takes in a message that is on the disk. owner is the call on whose
// own stream it came, or nil. It is left to the call that it answers; what
// answers no such call is read into memory as far as messages may go.
func (c *Client) receiveLong(p *spool, owner *call) {
	k := c.calls.find(p.id())
	switch {
	case p.fault != nil:
		c.notKept(p)
		if k != nil && !p.finder.method {
			c.calls.fail(k, &CallError{Method: k.method, Delivery: MaybeDelivered, Err: p.fault})
		}
	case k != nil && k.opts.Long != nil && !p.finder.method:
		if c.calls.finishLong(k, p, k == owner) {
			return
		}
	case k == nil && p.id() != "" && !p.finder.method: // the call was given up meanwhile
		c.calls.dropped.Add(1)
	default:
		c.receiveSpooled(p, owner)
	}
	p.close()
}

// notKept notes that there was no room for a message.
func (c *Client) notKept(p *spool) {
	c.noise.Add(1)
	c.opts.Logger.Warn("a long message was not kept", "error", p.fault)
}

// receiveSpooled reads a message into memory and takes it in as any other.
func (c *Client) receiveSpooled(p *spool, owner *call) {
	msg, err := p.load(c.opts.MaxMessageBytes)
	if err == nil {
		c.receiveBytes(msg, owner)
		return
	}
	f := &p.finder
	c.overlong(&errOverlong{id: p.id(), identified: f.identified, method: f.method})
}

// receiveEvent takes in the message of an event, if it is one.
func (c *Client) receiveEvent(ev *Event, owner *call) {
	isMessage := ev.Name == "" || ev.Name == "message"
	switch {
	case ev.spooled != nil && isMessage:
		c.receiveLong(ev.spooled, owner)
	case ev.spooled != nil:
		ev.spooled.close()
	case len(ev.Data) > 0 && isMessage:
		c.receiveBytes(ev.Data, owner)
	}
}

// readBody reads a response body and closes it. One that is a message too long
// for memory goes to the disk.
func (c *Client) readBody(resp *http.Response) ([]byte, *spool, error) {
	defer resp.Body.Close()
	size, above := resp.ContentLength, c.opts.LongBytes
	if !c.wantsLong() || size >= 0 && size <= above || mediaType(resp.Header) != contentJSON {
		body, err := readSized(resp.Body, size, c.opts.MaxMessageBytes)
		return body, nil, err
	}
	head, err := readUnsized(io.LimitReader(resp.Body, above+1), above+1)
	if err != nil || int64(len(head)) <= above {
		return head, nil, err
	}
	if !startsObject(head) {
		body, err := readSized(io.MultiReader(bytes.NewReader(head), resp.Body), size, c.opts.MaxMessageBytes)
		return body, nil, err
	}
	p := c.opts.Scratch.begin()
	p.write(head)
	err = p.readFrom(resp.Body)
	if err == nil && p.fault != nil { // the rest, and maybe the id in it, was not read
		c.notKept(p)
		err = p.fault
	}
	if err != nil {
		p.close()
		return nil, nil, err
	}
	return nil, p, nil
}

// longOutcome is what the caller of a call gets whose answer is on the disk. An
// answer that is no plain result is read as any other.
func (c *Client) longOutcome(k *call, p *spool) (json.RawMessage, error) {
	r, err := readLong(p)
	switch {
	case err == nil && r != nil:
		raw, err := k.opts.Long(r)
		if err != nil {
			return nil, &CallError{Method: k.method, Delivery: Answered, Err: err}
		}
		return raw, nil
	case err == nil:
		return c.spooledOutcome(k, p)
	case errors.Is(err, errMalformed):
		c.noise.Add(1)
		return nil, &CallError{Method: k.method, Delivery: MaybeDelivered, Err: fmt.Errorf("%w: %w", ErrNoAnswer, err)}
	}
	return nil, &CallError{Method: k.method, Delivery: MaybeDelivered, Err: fmt.Errorf("%w: %w", ErrNoRoom, err)}
}

func (c *Client) spooledOutcome(k *call, p *spool) (json.RawMessage, error) {
	msg, err := p.load(c.opts.MaxMessageBytes)
	if err != nil {
		return nil, &CallError{Method: k.method, Delivery: MaybeDelivered, Err: err}
	}
	f, err := ScanFrame(msg)
	switch {
	case err != nil:
		c.noise.Add(1)
		return nil, &CallError{Method: k.method, Delivery: MaybeDelivered, Err: fmt.Errorf("%w: %w", ErrNoAnswer, err)}
	case f.Kind == KindError:
		return nil, ParseError(f.Error)
	}
	return f.Result, nil
}
