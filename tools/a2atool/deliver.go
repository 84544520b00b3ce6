package a2atool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/toolcrib/toolcrib/tools"
)

// The pace at which an agent without a stream is asked for its task.
const (
	firstPoll   = 50 * time.Millisecond
	longestPoll = 5 * time.Second
	maxMisses   = 5 // polls in a row that fail
	maxBusy     = 2 * time.Second
)

// maxNote bounds one note of progress, in bytes.
const maxNote = 2 << 10

// deliver sends one message and returns when the task has ended or waits, or
// when the agent has answered without one.
func (x *exchange) deliver(ctx context.Context, msg *a2a.Message) error {
	x.heard, x.message = false, nil
	req := &a2a.SendMessageRequest{Message: msg, Config: &a2a.SendMessageConfig{
		AcceptedOutputModes: x.skill.out, HistoryLength: new(int),
	}}
	err := x.send(ctx, req)
	for pause := firstPoll; busy(err) && pause < maxBusy && sleep(ctx, pause) == nil; pause *= 2 {
		err = x.send(ctx, req)
	}
	if err != nil && (!x.heard || ctx.Err() != nil) {
		return err
	}
	// A stream that broke off leaves a task that can still be asked for.
	return x.poll(ctx)
}

// busy reports whether an agent refused an answer because the work that led to
// its question is still ending: agents of the Go library, whose task can be
// seen to wait a moment before it does, say so in these words alone.
func busy(err error) bool {
	return err != nil && strings.Contains(err.Error(), "task execution is already in progress")
}

// send sends the message and takes in what comes for it at once.
func (x *exchange) send(ctx context.Context, req *a2a.SendMessageRequest) error {
	sendCtx, answered, cancel := x.patient(ctx)
	defer cancel() // ends a stream of which no more is read
	tripCtx, t := withTrip(sendCtx)
	if !x.agent.card.Capabilities.Streaming {
		req.Config.ReturnImmediately = true
		res, err := x.agent.client.SendMessage(tripCtx, req)
		if err != nil {
			return x.failure(ctx, err, t)
		}
		return cmp.Or(x.take(ctx, res), ctx.Err())
	}
	for event, err := range x.agent.client.SendStreamingMessage(tripCtx, req) {
		if err == nil {
			err = x.take(ctx, event)
			answered()
		}
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return x.failure(ctx, err, t)
		}
		if x.settled() {
			return nil
		}
	}
	if !x.heard {
		return x.failure(ctx, errNoEvent, t)
	}
	return nil
}

// patient returns the context to send a message with. When ctx ends before the
// answer names the task, it goes on for cancelWait or until answered is called,
// because a task that has no name yet cannot be cancelled.
func (x *exchange) patient(ctx context.Context) (out context.Context, answered, cancel func()) {
	out, end := context.WithCancel(context.WithoutCancel(ctx))
	first := make(chan struct{})
	answered = sync.OnceFunc(func() { close(first) })
	if x.task != nil {
		answered()
	}
	stop := context.AfterFunc(ctx, func() {
		defer end()
		wait := time.NewTimer(cancelWait)
		defer wait.Stop()
		select {
		case <-first:
		case <-out.Done():
		case <-wait.C:
		}
	})
	return out, answered, func() { stop(); end() }
}

// errNoEvent says that a stream ended before it said anything.
var errNoEvent = errors.New("the stream ended without an answer")

func (x *exchange) failure(ctx context.Context, err error, t *trip) error {
	return x.peer.failure(ctx, x.skill.name, "sending the message", err, t.known())
}

// settled reports whether there is nothing more to wait for. Some agents show
// the question that was answered once more before they go on.
func (x *exchange) settled() bool {
	if x.message != nil {
		return true
	}
	if !x.heard || x.task == nil {
		return false
	}
	state := x.task.Status.State
	return state.Terminal() || waits(state) && !x.answered.same(questionOf(x.task.Status))
}

// poll asks for the task, less and less often, until it is settled.
func (x *exchange) poll(ctx context.Context) error {
	pause, misses := firstPoll, 0
	for !x.settled() {
		if x.task == nil || x.task.ID == "" {
			return x.peer.answerFailure(x.skill.name, errors.New("its answer names no task"))
		}
		if err := sleep(ctx, pause); err != nil {
			return x.peer.failure(ctx, x.skill.name, "waiting for the task", err, known{})
		}
		pause = min(pause*8/5, longestPoll)
		tripCtx, t := withTrip(ctx)
		task, err := x.agent.client.GetTask(tripCtx, &a2a.GetTaskRequest{ID: x.task.ID, HistoryLength: new(int)})
		if err == nil {
			misses = 0
			if err = x.take(ctx, task); err != nil {
				return err
			}
			continue
		}
		misses++
		failed := x.peer.failure(ctx, x.skill.name, "asking for the task", err, t.known())
		if ctx.Err() != nil || failed.Class == tools.ErrClassPermanent || misses > maxMisses {
			failed.Code, failed.Delivery = nil, tools.DeliveryUnknown // the message was delivered, whatever became of the question
			return failed
		}
		pause = max(pause, min(failed.RetryAfter, longestPoll*12))
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// take takes in one event, and passes on as progress what it says.
func (x *exchange) take(ctx context.Context, event a2a.Event) error {
	switch e := event.(type) {
	case *a2a.Message:
		x.message = e
	case *a2a.Task:
		x.takeTask(ctx, e)
	case *a2a.TaskStatusUpdateEvent:
		x.begin(e.TaskID, e.ContextID)
		x.takeStatus(ctx, e.Status)
	case *a2a.TaskArtifactUpdateEvent:
		if e.Artifact == nil {
			break
		}
		x.begin(e.TaskID, e.ContextID)
		x.takeArtifact(e)
		x.note(ctx, artifactNote(e))
	default:
		return fmt.Errorf("an event of the unknown type %T", event)
	}
	x.heard = true
	return nil
}

func (x *exchange) begin(id a2a.TaskID, contextID string) {
	if x.task == nil {
		x.task = &a2a.Task{ID: id, ContextID: contextID}
	}
}

// takeTask replaces what was known of the task. Its artifacts are whole, unless
// there are none.
func (x *exchange) takeTask(ctx context.Context, t *a2a.Task) {
	before := x.task
	x.task = t
	if before == nil {
		x.takeStatus(ctx, t.Status)
		return
	}
	if len(t.Artifacts) == 0 {
		t.Artifacts = before.Artifacts
	}
	if x.heard && before.Status.State == t.Status.State && textOf(before.Status.Message) == textOf(t.Status.Message) {
		return
	}
	x.takeStatus(ctx, t.Status)
}

func (x *exchange) takeStatus(ctx context.Context, s a2a.TaskStatus) {
	x.task.Status = s
	if s.State.Terminal() || waits(s.State) {
		return // it is the answer, or a question
	}
	text := textOf(s.Message)
	if text == "" {
		text = stateWord(s.State)
	}
	x.note(ctx, text)
}

// takeArtifact adds an artifact, replaces it, or adds to it.
func (x *exchange) takeArtifact(e *a2a.TaskArtifactUpdateEvent) {
	i := slices.IndexFunc(x.task.Artifacts, func(a *a2a.Artifact) bool { return a != nil && a.ID == e.Artifact.ID })
	switch {
	case i < 0:
		x.task.Artifacts = append(x.task.Artifacts, e.Artifact)
	case e.Append:
		grown := *x.task.Artifacts[i]
		grown.Parts = appendParts(grown.Parts, e.Artifact.Parts)
		x.task.Artifacts[i] = &grown
	default:
		x.task.Artifacts[i] = e.Artifact
	}
}

// appendParts adds parts; text that goes on where the last part ends is one
// text, since agents stream an answer word by word.
func appendParts(parts, more a2a.ContentParts) a2a.ContentParts {
	out := slices.Clone(parts)
	for _, p := range more {
		if p == nil {
			continue
		}
		last := len(out) - 1
		if last >= 0 && continues(out[last], p) {
			joined := *out[last]
			joined.Content = a2a.Text(out[last].Text() + p.Text())
			out[last] = &joined
			continue
		}
		out = append(out, p)
	}
	return out
}

func continues(last, next *a2a.Part) bool {
	if last == nil {
		return false
	}
	_, a := last.Content.(a2a.Text)
	_, b := next.Content.(a2a.Text)
	return a && b && last.MediaType == next.MediaType && last.Filename == next.Filename && len(next.Metadata) == 0
}

// note passes on how far the task is. A call does not fail when nobody listens.
func (x *exchange) note(ctx context.Context, text string) {
	x.notes++
	note := tools.ProgressNote{Progress: x.notes, Message: bound(text, maxNote)}
	if err := x.call.Progress(ctx, note); err != nil && ctx.Err() == nil {
		x.peer.log.Debug("a note of the agent did not reach the caller", "error", err)
	}
}

func artifactNote(e *a2a.TaskArtifactUpdateEvent) string {
	var text strings.Builder
	for _, p := range e.Artifact.Parts {
		if p != nil {
			text.WriteString(p.Text())
		}
	}
	switch {
	case text.Len() > 0:
		return text.String()
	case e.Artifact.Name != "":
		return "artifact " + e.Artifact.Name
	}
	return "artifact " + string(e.Artifact.ID)
}

// stateWord is a state as people write it.
func stateWord(s a2a.TaskState) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(s.String(), "TASK_STATE_")), "_", " ")
}
