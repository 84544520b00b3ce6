package mcpwire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// receiveBytes takes in one message, or a batch where the revision has them.
// owner is the call on whose own stream it came, or nil. What is no message is
// counted as noise.
func (c *Client) receiveBytes(data []byte, owner *call) {
	if c.server.Load().Version == Version20250326 {
		if messages, batch, err := SplitBatch(data); err == nil && batch {
			for _, m := range messages {
				c.receiveOne(m, owner)
			}
			return
		}
	}
	c.receiveOne(data, owner)
}

func (c *Client) receiveOne(data []byte, owner *call) {
	f, err := ScanFrame(data)
	if err != nil {
		c.noise.Add(1)
		c.opts.Logger.Debug("not a message", "error", err, "bytes", len(data))
		c.unreadable(data, err)
		return
	}
	c.receive(f, owner)
}

// unreadable fails the call that is answered by what is no message, such as one that
// nests too deeply: no other answer will come. What a server prints beside its
// messages answers nothing.
func (c *Client) unreadable(data []byte, err error) {
	if !bytes.Contains(data, []byte(`"jsonrpc"`)) {
		return
	}
	var f idFinder
	f.feed(data)
	if k := c.calls.find(ID(f.found)); k != nil && f.complete() && !f.method {
		c.calls.fail(k, &CallError{Method: k.method, Delivery: MaybeDelivered, Err: fmt.Errorf("%w: %w", ErrNoAnswer, err)})
	}
}

func (c *Client) receive(f Frame, owner *call) {
	switch f.Kind {
	case KindResult, KindError:
		c.receiveAnswer(f, owner)
	case KindNotification:
		c.receiveNotification(f, owner)
	case KindRequest:
		c.receiveRequest(f, owner)
	}
}

func (c *Client) receiveAnswer(f Frame, owner *call) {
	refusedUnread := f.ID == "" && f.Kind == KindError // the id could not be read
	if owner != nil && (refusedUnread || c.calls.find(f.ID) == owner) {
		c.calls.finishOwn(owner, f)
		return
	}
	c.calls.finish(f)
}

func (c *Client) receiveNotification(f Frame, owner *call) {
	switch f.Method {
	case NotifyCancelled:
		c.requests.cancelled(f.Params)
		return
	case NotifyProgress:
		if c.receiveProgress(f) {
			return
		}
	}
	if named := c.subscriber(f.Params); named != nil {
		owner = named
	}
	if owner != nil && owner.opts.Notification != nil {
		owner.notify(notification{f.Method, f.Params, owner.opts.Notification})
		return
	}
	if c.opts.OnNotification != nil {
		c.mail.put(notification{f.Method, f.Params, c.opts.OnNotification})
	}
}

// receiveProgress routes a progress notification to the call whose token it
// carries. One whose call is over is dropped: its owner no longer listens.
func (c *Client) receiveProgress(f Frame) bool {
	token, ok := rawjson.Get(f.Params, metaProgressToken)
	if !ok {
		return false
	}
	k := c.calls.find(ID(token))
	if k == nil || k.opts.Progress == nil {
		return true
	}
	progress := k.opts.Progress
	k.notify(notification{f.Method, f.Params, func(_ string, params json.RawMessage) { progress(params) }})
	return true
}

// subscriber returns the call whose subscription a notification names.
func (c *Client) subscriber(params json.RawMessage) *call {
	if c.server.Load().Era != EraStateless {
		return nil
	}
	id, ok := rawjson.Get(params, "_meta", MetaSubscriptionID)
	if !ok {
		return nil
	}
	return c.calls.find(ID(id))
}

// receiveRequest answers a request of the server on a goroutine of its own.
func (c *Client) receiveRequest(f Frame, owner *call) {
	ctx, cancel, err := c.requests.begin(c.ctx, f.ID)
	if err != nil {
		c.goWork(func() { c.answer(f.ID, nil, err) })
		return
	}
	c.goWork(func() {
		defer c.requests.end(f.ID, cancel)
		result, err := c.serveRequest(ctx, f, owner)
		if errors.Is(context.Cause(ctx), errCancelled) {
			return // a cancelled request has no answer
		}
		c.answer(f.ID, result, err)
	})
}

func (c *Client) serveRequest(ctx context.Context, f Frame, owner *call) (result json.RawMessage, err error) {
	defer recovered(c.opts.Logger, f.Method, &err)
	handle := c.opts.OnRequest
	if owner != nil && owner.opts.Request != nil {
		handle = owner.opts.Request
	}
	switch {
	case f.Method == MethodPing:
		return nil, nil
	case handle == nil:
		return nil, Errorf(CodeMethodNotFound, "method not found: %s", f.Method)
	}
	result, err = handle(ctx, &ServerRequest{Method: f.Method, Params: f.Params, ID: f.ID})
	if err == nil {
		err = checkRaw("result", result)
	}
	return result, err
}

func (c *Client) answer(id ID, result json.RawMessage, err error) {
	var msg []byte
	if err != nil {
		msg = AppendErrorAnswer(nil, id, asError(err))
	} else {
		msg = AppendResult(nil, id, result)
	}
	if err := c.link.send(c.ctx, "", msg); err != nil {
		c.opts.Logger.Debug("answer not sent", "error", err)
	}
}
