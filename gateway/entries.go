package gateway

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"

	"github.com/toolcrib/toolcrib/tools"
)

// amender returns the function that lays what the operator says over tools,
// whenever they appear.
func (t *Tools) amender() func(*tools.Tool) {
	byName := make(map[string]*Entry, len(t.Entries))
	for i := range t.Entries {
		byName[t.Entries[i].Name] = &t.Entries[i]
	}
	builtIn := slices.Clone(t.BuiltIn)
	return func(t *tools.Tool) {
		if t.Kind == tools.KindMeta && slices.Contains(builtIn, t.Name) {
			t.Loading = tools.LoadingAlways
		}
		if e := byName[t.Name]; e != nil {
			e.amend(t)
		}
	}
}

// amend lays what the entry sets over t.
func (e *Entry) amend(t *tools.Tool) {
	overlay(&t.Loading, e.LoadingMode)
	overlay(&t.Description, e.Description)
	overlay(&t.SideEffects, e.SideEffect)
	overlay(&t.Category, e.Category)
	overlay(&t.Namespace, e.Namespace)
	t.Tags = union(t.Tags, e.Tags)
	t.AuthScopes = union(t.AuthScopes, e.AuthScopes)
	if len(e.Tenants) > 0 {
		t.Tenants = slices.Clone(e.Tenants)
	}
	if e.Exclusive != nil {
		t.Exclusive = *e.Exclusive
	}
	t.Policy = e.Policy.over(t.Policy)
	e.Safety.amend(&t.Safety)
	e.settleEffect(t)
}

// settleEffect lets a side effect that the operator states stand against the
// flags of the tool's source, unless the operator states flags too.
func (e *Entry) settleEffect(t *tools.Tool) {
	if e.SideEffect == "" || e.Safety != nil {
		return
	}
	harmless := e.SideEffect == tools.SideEffectPure || e.SideEffect == tools.SideEffectRead
	t.Safety.ReadOnly = tools.FlagOf(harmless)
	if harmless {
		t.Safety.Destructive = tools.No
	}
}

func (s *Safety) amend(to *tools.Safety) {
	if s == nil {
		return
	}
	overlay(&to.ReadOnly, s.ReadOnly)
	overlay(&to.Destructive, s.Destructive)
	overlay(&to.Idempotent, s.Idempotent)
	overlay(&to.OpenWorld, s.OpenWorld)
	overlay(&to.Filesystem, s.Filesystem)
	overlay(&to.Process, s.Process)
	overlay(&to.Spend, s.Spend)
	overlay(&to.NeedsConfirmation, s.NeedsConfirmation)
	overlay(&to.WorkspaceRoot, s.WorkspaceRoot)
	overlay(&to.Redaction, s.Redaction)
}

func overlay[T comparable](dst *T, v T) {
	var zero T
	if v != zero {
		*dst = v
	}
}

// union returns have with those of more that it lacks.
func union(have, more []string) []string {
	out := slices.Clone(have)
	for _, s := range more {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// stages are the parts of the road that the entries ask for.
func stages(entries []Entry) tools.Stages {
	denied := map[string]string{}
	for _, e := range entries {
		if e.Approval != nil && e.Approval.Policy == approvalDenied {
			denied[e.Name] = e.Approval.Reason
		}
	}
	if len(denied) == 0 {
		return tools.Stages{}
	}
	return tools.Stages{Safety: refusal(denied)}
}

const (
	approvalGated  = "gated"
	approvalDenied = "denied"
)

// refusal is a safety policy that denies the tools that it holds, each with
// its reason, and decides about others as a catalog without a policy does.
type refusal map[string]string

// Decide implements tools.SafetyPolicy.
func (r refusal) Decide(_ context.Context, tool *tools.Tool, _ json.RawMessage) (tools.Verdict, string, error) {
	reason, denied := r[tool.Name]
	switch {
	case denied && reason == "":
		return tools.Deny, "the operator denies calls of this tool", nil
	case denied:
		return tools.Deny, reason, nil
	case tool.Safety.NeedsConfirmation == tools.Yes:
		return tools.Ask, "the tool needs confirmation", nil
	}
	return tools.Allow, "", nil
}

// waiting follows the entries whose tool is not in the catalog, and says so in
// the log, once each time that it goes missing.
type waiting struct {
	log    *slog.Logger
	mu     sync.Mutex
	names  []string
	warned map[string]bool
}

func newWaiting(log *slog.Logger) *waiting { return &waiting{log: log, warned: map[string]bool{}} }

// expect sets the names that the entries give.
func (w *waiting) expect(entries []Entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names = nil
	for _, e := range entries {
		w.names = append(w.names, e.Name)
	}
}

// missing returns the names that cat does not hold, and logs what changed.
func (w *waiting) missing(cat tools.ToolCatalog) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, name := range w.names {
		_, found := cat.Resolve(name)
		if !found {
			out = append(out, name)
		}
		switch {
		case !found && !w.warned[name]:
			w.warned[name] = true
			w.log.Warn("an entry names a tool that does not exist yet; it is applied when the tool appears", "tool", name)
		case found && w.warned[name]:
			delete(w.warned, name)
			w.log.Info("the tool of an entry appeared", "tool", name)
		}
	}
	return out
}
