package provider

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/stream"
)

// What the backend does not permit a worker it often tells nobody who waits for it, and
// a caller then only hears of no answer. So the worker remembers it, and says it in its
// answers to pings, until the same is permitted.

// need is something that the backend must permit a worker.
type need int

const (
	toAsk       need = iota // a process of a registry
	toPublish               // what such a process listens to
	toLeave                 // a result on the stream of results
	toTake                  // calls from the stream, and to acknowledge them
	manyNeeds               // how many there are
	unimportant need = -1
)

// hindered says what is not done when a need is not permitted.
var hindered = [manyNeeds]string{
	toAsk:     "it cannot claim calls or hand in their results",
	toPublish: "it cannot publish results of harmless calls or what comes before a result",
	toLeave:   "it cannot leave results for a gateway that is away",
	toTake:    "it cannot take calls from their stream or acknowledge them",
}

// denialTime is how long after something was sent it is clear that it was permitted.
const denialTime = 2 * time.Second

// hindrances are the needs that the backend does not permit.
type hindrances struct {
	some atomic.Bool // whether there may be any

	mu   sync.Mutex
	list [manyNeeds]hindrance
}

type hindrance struct {
	why   string    // empty for what is permitted
	last  time.Time // when the backend said so last
	tried time.Time // when it was tried first after that
}

// add notes that something is not permitted, and reports whether that is news.
func (h *hindrances) add(n need, why string, now time.Time) (news bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	one := &h.list[n]
	news = one.why == ""
	*one = hindrance{why: why, last: now}
	h.some.Store(true)
	return news
}

// try notes that something is sent of which only a denial would be heard.
func (h *hindrances) try(n need) {
	if !h.some.Load() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if one := &h.list[n]; one.why != "" && one.tried.IsZero() {
		one.tried = time.Now()
	}
}

// end notes that something was permitted.
func (h *hindrances) end(n need) {
	if !h.some.Load() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list[n] = hindrance{}
}

// text says to a person what is not permitted, or nothing.
func (h *hindrances) text(now time.Time) string {
	if !h.some.Load() {
		return ""
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var said []string
	for n := range h.list {
		one := &h.list[n]
		if !one.tried.IsZero() && now.Sub(one.tried) > denialTime {
			*one = hindrance{}
		}
		if one.why != "" {
			said = append(said, hindered[n]+": "+one.why)
		}
	}
	h.some.Store(len(said) > 0)
	return strings.Join(said, "; ")
}

// denied notes what the backend did not permit, where it keeps the worker from
// serving calls.
func (w *worker) denied(d stream.Denial) {
	n := w.needOf(&d)
	if n == unimportant || !w.hindrances.add(n, d.Err.Error(), time.Now()) {
		return
	}
	w.log.Error("the stream server does not permit what the worker needs", "instance", w.instance, "consequence", hindered[n], "error", d.Err)
}

// needOf says for what the worker needs what was denied.
func (w *worker) needOf(d *stream.Denial) need {
	own := registry.GatewayInbox(w.opts.Namespace)
	switch process := strings.HasPrefix(d.Subject, own+":process:"); {
	case process && strings.HasSuffix(d.Subject, registry.NotesSubject("")):
		return toPublish
	case process, strings.HasPrefix(d.Subject, own+":settle:"):
		return toAsk
	case strings.HasPrefix(d.Stream, own+":results:"):
		return toLeave
	case d.Stream == registry.RequestStream(w.toolset):
		return toTake
	}
	return unimportant
}
