package provider

import (
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/toolcrib/toolcrib/internal/wait"
	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/stream"
)

// listen opens what the worker hears beside its stream.
func (w *worker) listen(ctx context.Context) ([]stream.Subscription, error) {
	var subs []stream.Subscription
	own, err := w.client.Respond(ctx, registry.InstanceSubject(w.toolset, w.instance), w.respond)
	if err != nil {
		return nil, fmt.Errorf("provider: respond to pings: %w", err)
	}
	subs = append(subs, own)
	for subject, handle := range map[string]func(stream.Message){
		registry.CancelSubject(w.toolset):       w.hearCancel,
		registry.HelloSubject(w.opts.Namespace): func(stream.Message) { poke(w.greeted) },
	} {
		s, err := w.client.Subscribe(ctx, subject, handle)
		if err != nil {
			return subs, fmt.Errorf("provider: listen to %s: %w", subject, err)
		}
		subs = append(subs, s)
	}
	return subs, nil
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (w *worker) hearCancel(m stream.Message) {
	if m.Name == registry.MessageProbe {
		w.tellHeld(m)
		return
	}
	var c registry.Cancel
	if json.Unmarshal(m.Payload, &c) == nil && c.ToolUseID != "" && max(len(c.ToolUseID), len(c.Token)) <= registry.MaxIDBytes {
		w.drop(&c)
	}
}

// tellHeld says which of some calls the worker has.
func (w *worker) tellHeld(m stream.Message) {
	var asked registry.Probe
	if json.Unmarshal(m.Payload, &asked) != nil || asked.Inbox == "" {
		return
	}
	held := registry.Probe{}
	w.mu.Lock()
	mine := make(map[string][]string, len(w.held)) // their tokens
	for _, j := range w.held {
		mine[j.msg.ToolUseID] = append(mine[j.msg.ToolUseID], j.out.token())
	}
	w.mu.Unlock()
	for _, id := range asked.ToolUseIDs {
		for _, token := range mine[id] {
			held.ToolUseIDs, held.Tokens = append(held.ToolUseIDs, id), append(held.Tokens, token)
		}
	}
	if len(held.ToolUseIDs) == 0 {
		return
	}
	payload, err := registry.Encode(held)
	if err == nil {
		ctx, cancel := w.brief()
		defer cancel()
		err = w.client.Publish(ctx, registry.NotesSubject(asked.Inbox), stream.Message{Name: registry.MessageHeld, Payload: payload})
	}
	if err != nil {
		w.log.Warn("a registry cannot be told which calls the worker has", "error", err)
	}
}

// respond answers a ping of a registry or a request to end, and takes what a
// caller answered.
func (w *worker) respond(ctx context.Context, m stream.Message) stream.Message {
	if m.Name == registry.MessageRetire {
		return w.retireRequest(ctx, m)
	}
	if m.Name == registry.MessageAnswer {
		return w.asks.hear(m.Payload)
	}
	ping, err := registry.DecodeCall(m.Payload)
	if err != nil || ping.Type != registry.TypePing {
		return stream.Message{Name: registry.MessageRetry}
	}
	poke(w.heard)
	if err := w.pong(ctx, ping.PingID); err != nil {
		w.log.Warn("a ping is not acknowledged", "error", err)
		return stream.Message{Name: registry.MessageRetry}
	}
	payload, err := json.Marshal(w.status(ping.PingID))
	if err != nil {
		return stream.Message{Name: registry.MessageRetry}
	}
	return stream.Message{Name: registry.MessagePong, Payload: payload}
}

// retireRequest ends the worker when a registry asks for it, and answers when it
// has.
func (w *worker) retireRequest(ctx context.Context, m stream.Message) stream.Message {
	var asked registry.Retire
	token := w.token.Load()
	if json.Unmarshal(m.Payload, &asked) != nil || token == nil || subtle.ConstantTimeCompare([]byte(asked.Token), []byte(*token)) == 0 {
		w.log.Warn("somebody who is not the registry that admitted the worker asks it to end")
		return stream.Message{Name: registry.MessageRetry}
	}
	w.retire.Do(func() { close(w.retired) })
	select {
	case <-w.drained:
		return stream.Message{Name: registry.MessageOK}
	case <-ctx.Done():
		return stream.Message{Name: registry.MessageRetry}
	}
}

// maxPongs bounds the calls of Options.Pong that have not returned: those of many
// registries at once, or those that do not end with their contexts.
const maxPongs = 16

// pong calls Options.Pong, which gets no more than its time even if it does not
// look at its context.
func (w *worker) pong(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, w.opts.PongTimeout)
	defer cancel()
	select {
	case w.pongs <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("provider: %d calls of Pong have not returned, and no further one is made: %w", maxPongs, ctx.Err())
	}
	done := make(chan error, 1)
	go func() {
		defer func() { <-w.pongs }()
		defer func() {
			if r := recover(); r != nil {
				done <- fmt.Errorf("provider: Pong panicked: %v", r)
			}
		}()
		done <- w.opts.Pong(ctx, id)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("provider: Pong took longer than %s: %w", w.opts.PongTimeout, ctx.Err())
	}
}

// streamPing acknowledges a ping that came with the calls.
func (w *worker) streamPing(e stream.Event, id string) {
	if err := w.pong(w.work, id); err != nil {
		w.log.Warn("a ping is not acknowledged", "error", err)
	}
	ctx, cancel := w.brief()
	defer cancel()
	if err := e.Ack(ctx); err != nil {
		w.log.Warn("a ping cannot be taken from the stream and will come again", "error", err)
	}
}

func (w *worker) status(pingID string) registry.Status {
	return registry.Status{Toolset: w.toolset, Instance: w.instance, Version: w.opts.Version, PingID: pingID,
		Running: int(w.running.Load()), Queued: len(w.queue) + w.aside.count(), Concurrency: w.opts.MaxConcurrentToolCalls, Queue: w.opts.MaxQueuedToolCalls,
		Served: w.served.Load(), Failed: w.failed.Load(), Draining: w.draining.Load(), Now: time.Now(),
		Hindered: w.hindrances.text(time.Now())}
}

// enter announces the worker. It returns when it may serve: because a registry
// says so, or because there is none, in which case calls that are on the stream
// are served all the same; admitted says which.
func (w *worker) enter(ctx context.Context) (admitted bool, err error) {
	for said := ""; ctx.Err() == nil; {
		a, err := w.announce(ctx)
		switch {
		case errors.Is(err, stream.ErrForbidden):
			return false, fmt.Errorf("provider: announce the worker: %w", err)
		case err != nil:
			w.log.Info("no registry answers yet", "error", err)
			poke(w.renew)
			return false, nil
		case a.Status == registry.StatusServe, w.contract == nil && a.Status == registry.StatusStandby:
			if a.Status == registry.StatusStandby {
				poke(w.renew)
			}
			return a.Status == registry.StatusServe, nil
		case a.Status == registry.StatusRefused:
			return false, fmt.Errorf("%w: %s", ErrRefused, a.Message)
		}
		if a.Message != said {
			said = a.Message
			w.log.Info("the worker is on standby", "reason", said)
		}
		if !wait.For(ctx, retryAfter(&a)) {
			return false, nil
		}
	}
	return false, nil
}

// retryAfter is how long to wait before a registry is asked again.
func retryAfter(a *registry.Admission) time.Duration {
	return max(time.Duration(a.RetryAfterMS)*time.Millisecond, 10*time.Millisecond)
}

// announceTime bounds one announcement, which may write to the store.
const announceTime = 10 * time.Second

// announce asks a registry to admit the worker.
func (w *worker) announce(ctx context.Context) (registry.Admission, error) {
	a := &registry.Announcement{Toolset: w.toolset, Instance: w.instance, Version: w.opts.Version, Host: w.host,
		Concurrency: w.opts.MaxConcurrentToolCalls, Queue: w.opts.MaxQueuedToolCalls, Contract: w.contract,
		Incomplete: w.opts.Incomplete != nil && w.opts.Incomplete()}
	if len(w.opts.Key) > 0 {
		if err := a.Sign(w.opts.Key); err != nil {
			return registry.Admission{}, err
		}
	}
	payload, err := registry.Encode(a)
	if err != nil {
		return registry.Admission{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, announceTime)
	defer cancel()
	answer, err := w.client.Request(ctx, registry.AnnounceSubject(w.opts.Namespace), stream.Message{Name: registry.MessageAnnounce, Payload: payload})
	if err != nil {
		return registry.Admission{}, err
	}
	var out registry.Admission
	if err := json.Unmarshal(answer.Payload, &out); err != nil {
		return registry.Admission{}, fmt.Errorf("provider: a registry's answer cannot be read: %w", err)
	}
	if silence := time.Duration(out.SilenceMS) * time.Millisecond; silence > 0 {
		w.silence.Store(int64(silence))
	}
	if out.Token != "" {
		w.token.Store(&out.Token)
	}
	return out, nil
}

// patience is how long the worker waits for a ping.
func (w *worker) patience() time.Duration {
	if d := time.Duration(w.silence.Load()); d > 0 {
		return d
	}
	return registry.DefaultStaleAfter + registry.DefaultPingInterval
}

// awaitStream waits for a registry, which makes the streams of a toolset when it
// admits a worker, where this worker may not make them itself. What it says names no
// right to permit, for who may make a stream can have it copy others. It returns when
// there may be a registry.
func (w *worker) awaitStream(ctx context.Context, fault error) {
	w.log.Warn("the worker waits for a gateway to make the streams of its toolset; start one, the worker itself needs no more rights for it",
		"namespace", cmp.Or(w.opts.Namespace, registry.DefaultNamespace))
	w.log.Debug("the worker may not make the streams", "error", fault)
	timer := time.NewTimer(longestPause)
	defer timer.Stop()
	select {
	case <-w.greeted:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// leave tells the registries that the worker ends.
func (w *worker) leave() {
	ctx, cancel := w.brief()
	defer cancel()
	err := w.sayGoodbye(ctx)
	if err != nil && !errors.Is(err, stream.ErrNoResponder) {
		w.log.Warn("the registry cannot be told that the worker ends", "error", err)
	}
}

func (w *worker) sayGoodbye(ctx context.Context) error {
	a := &registry.Announcement{Toolset: w.toolset, Instance: w.instance, Leaving: true}
	if len(w.opts.Key) > 0 {
		if err := a.Sign(w.opts.Key); err != nil {
			return err
		}
	}
	payload, err := registry.Encode(a)
	if err != nil {
		return err
	}
	answer, err := w.client.Request(ctx, registry.AnnounceSubject(w.opts.Namespace), stream.Message{Name: registry.MessageLeave, Payload: payload})
	if err == nil && answer.Name != registry.MessageOK {
		return errors.New("it refuses the goodbye")
	}
	return err
}
