package provider_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/provider"
	"github.com/toolcrib/toolcrib/registry/stream"
	"github.com/toolcrib/toolcrib/registry/stream/natsserver"
)

// desk is a registry by hand, which answers claims and results that come together
// for some, and leaves others out or has them handed in alone.
type desk struct {
	t    *testing.T
	most int // bytes of a question

	mu        sync.Mutex
	claims    map[string]int
	results   map[string]int
	questions map[string]int // by their names
}

func (d *desk) answer(_ context.Context, m stream.Message) stream.Message {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.questions[m.Name]++
	if len(m.Payload) > d.most {
		d.t.Errorf("%s has %d bytes", m.Name, len(m.Payload))
	}
	switch m.Name {
	case registry.MessageClaim:
		d.note(d.claims, m.Payload)
		return stream.Message{Name: string(registry.VerdictRun)}
	case registry.ResultEventKey:
		d.note(d.results, m.Payload)
		return stream.Message{Name: registry.MessageOK}
	case registry.MessageClaims:
		return d.verdicts(d.claims, m.Payload, string(registry.VerdictRun))
	case registry.MessageResults:
		return d.verdicts(d.results, m.Payload, registry.MessageOK)
	}
	d.t.Errorf("a question %q", m.Name)
	return stream.Message{}
}

// verdicts takes two of three, and leaves out the last one.
func (d *desk) verdicts(of map[string]int, payload []byte, verdict string) stream.Message {
	var list []json.RawMessage
	if err := json.Unmarshal(payload, &list); err != nil {
		d.t.Error(err)
	}
	verdicts := []string{}
	for i, one := range list[:len(list)-1] {
		if i%3 == 2 {
			verdicts = append(verdicts, registry.MessageAlone)
			continue
		}
		d.note(of, one)
		verdicts = append(verdicts, verdict)
	}
	answer, err := json.Marshal(verdicts)
	if err != nil {
		d.t.Error(err)
	}
	return stream.Message{Name: registry.MessageVerdicts, Payload: answer}
}

func (d *desk) note(in map[string]int, payload []byte) {
	var m struct {
		ID string `json:"tool_use_id"`
	}
	if err := json.Unmarshal(payload, &m); err != nil {
		d.t.Error(err)
	}
	in[m.ID]++
}

// taken is how many results came, and whether each call was claimed and answered
// once.
func (d *desk) taken() (results int, once bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	once = true
	for id, n := range d.results {
		once = once && n == 1 && d.claims[id] == 1
	}
	return len(d.results), once
}

// Claims and results of many calls go together, in questions that the backend
// takes, and each ends as it would alone, also when it gets no verdict.
func TestCallsGoTogether(t *testing.T) {
	const calls, limit = 200, 64 << 10
	c := newCribOn(t, nil, &natsserver.Options{MaxPayload: limit})
	d := &desk{t: t, most: limit, claims: map[string]int{}, results: map[string]int{}, questions: map[string]int{}}
	sub, err := c.client.Respond(t.Context(), "desk", d.answer)
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	var ran atomic.Int64
	large := json.RawMessage(`"` + strings.Repeat("x", 20<<10) + `"`)
	c.serve("demo", provider.HandlerFunc(func(context.Context, registry.ToolCallMessage) (registry.ToolResultMessage, error) {
		ran.Add(1)
		return registry.ToolResultMessage{ResultJSON: large}, nil
	}), provider.Options{MaxConcurrentToolCalls: calls})
	for i := range calls {
		c.add("demo", "call", fmt.Sprintf(`{"type":"call","tool_use_id":"c%d","tool":"t","payload":{},"route":{"inbox":"desk","token":"t","claim":true,"confirm":true}}`, i))
	}
	await(t, "all calls are answered", func() bool { n, _ := d.taken(); return n == calls })
	if _, once := d.taken(); !once || ran.Load() != calls {
		t.Errorf("%d calls ran; claims %v, results %v", ran.Load(), d.claims, d.results)
	}
	if d.questions[registry.MessageClaims] == 0 || d.questions[registry.MessageResults] == 0 {
		t.Errorf("nothing came together: %v", d.questions)
	}
	s, err := c.client.Stream(t.Context(), registry.RequestStream("demo"), nil)
	if err != nil {
		t.Fatal(err)
	}
	await(t, "all calls are settled", func() bool {
		size, err := s.Size(t.Context())
		return err == nil && size.Waiting == 0 && size.Held == 0
	})
}
