package a2atool

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// The bounds of what a card says about a skill.
const (
	maxDescription = 8 << 10
	maxExample     = 1 << 10
	maxExamples    = 8
)

// A skill is one skill of an agent as a tool.
type skill struct {
	name  string // canonical
	id    string // the agent's
	modes modes
	out   []string // MIME types that the skill answers with
}

// describe makes a tool of every skill. A skill that cannot be read, has no id,
// or whose id another one has, is refused.
func (p *Peer) describe(a *agent) ([]tools.ToolDescriptor, []tools.Refusal) {
	var (
		list    []tools.ToolDescriptor
		refused []tools.Refusal
		seen    = map[string]bool{}
	)
	name := p.agentName()
	for i := range a.card.Skills {
		s := &a.card.Skills[i]
		switch {
		case a.faults[i] != nil:
			refused = append(refused, tools.Refusal{Name: fmt.Sprintf("skill %d", i+1), Err: a.faults[i]})
			continue
		case s.ID == "":
			refused = append(refused, tools.Refusal{Name: bound(s.Name, 128), Err: fmt.Errorf("skill %d of the card has no id", i+1)})
			continue
		case seen[s.ID]:
			refused = append(refused, tools.Refusal{Name: bound(s.ID, 128), Err: fmt.Errorf("skill %d of the card has the id of another one", i+1)})
			continue
		}
		seen[s.ID] = true
		list = append(list, p.descriptor(a.card, s, name))
	}
	return list, refused
}

func (p *Peer) agentName() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.name
}

func (p *Peer) descriptor(card *a2a.AgentCard, s *a2a.AgentSkill, agent string) tools.ToolDescriptor {
	in := s.InputModes
	if len(in) == 0 {
		in = card.DefaultInputModes
	}
	sk := &skill{name: tools.CanonicalName(agent+"_", s.ID), id: s.ID, modes: modesOf(in), out: slices.Clone(s.OutputModes)}
	t := tools.Tool{
		Name:        sk.name,
		Title:       bound(s.Name, 256),
		Description: describeSkill(card, s),
		ArgsSchema:  sk.modes.schema(),
		Tags:        p.tags(s),
		LatencyHint: p.cfg.Latency,
		Examples:    examples(s, sk.modes),
		Source:      p.id,
		Transport:   tools.TransportA2A,
		Policy:      p.cfg.Policy,
		HandlesMIME: slices.Clone(in),
		Namespace:   agent,
		Category:    "agent",
		Version:     bound(card.Version, 128),
		SourceName:  s.ID,
		Safety:      tools.Safety{OpenWorld: tools.Yes},
	}
	if policy, ok := p.cfg.ToolPolicies[s.ID]; ok {
		t.Policy = policy
	}
	return p.options.Descriptor(t, p.invoker(sk))
}

// tags are those of the skill, and the agent's tier of trust.
func (p *Peer) tags(s *a2a.AgentSkill) []string {
	var tags []string
	for _, t := range s.Tags {
		if t != "" {
			tags = append(tags, bound(t, 64))
		}
	}
	if p.cfg.TrustTier > 0 {
		tags = append(tags, fmt.Sprintf("trust_tier:%d", p.cfg.TrustTier))
	}
	return tags
}

// describeSkill tells what the skill does, whose it is, and how it is asked.
func describeSkill(card *a2a.AgentCard, s *a2a.AgentSkill) string {
	var b strings.Builder
	for _, text := range []string{s.Description, s.Name, s.ID} {
		if text != "" {
			b.WriteString(bound(text, maxDescription))
			break
		}
	}
	fmt.Fprintf(&b, "\n\nThis is a skill of the agent %q, which is asked in natural language", bound(card.Name, 128))
	if card.Description != "" {
		fmt.Fprintf(&b, " (%s)", bound(strings.TrimSuffix(card.Description, "."), 512))
	}
	b.WriteByte('.')
	for i, e := range s.Examples[:min(len(s.Examples), maxExamples)] {
		if i == 0 {
			b.WriteString("\n\nExamples:")
		}
		b.WriteString("\n- " + bound(e, maxExample))
	}
	return b.String()
}

func examples(s *a2a.AgentSkill, m modes) []tools.ToolExample {
	if !m.text {
		return nil
	}
	var out []tools.ToolExample
	for _, e := range s.Examples[:min(len(s.Examples), maxExamples)] {
		out = append(out, tools.ToolExample{Args: map[string]any{"message": bound(e, maxExample)}})
	}
	return out
}

// modes are the kinds of content that a skill takes.
type modes struct {
	text, data, files bool
	mime              []string // of the files, when the skill names them
}

// modesOf sorts MIME types. A skill that names none takes everything.
func modesOf(in []string) modes {
	var m modes
	for _, mode := range in {
		kind, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(mode)), ";")
		switch {
		case kind == "":
		case kind == "*/*":
			m.text, m.data, m.files = true, true, true
		case kind == "text", kind == "text/*", kind == "text/plain", kind == "text/markdown":
			m.text = true
		case kind == "data", kind == "json", kind == "application/json", strings.HasSuffix(kind, "+json"):
			m.data = true
		default:
			m.files = true
			m.mime = append(m.mime, mode)
		}
	}
	if !m.text && !m.data && !m.files {
		return modes{text: true, data: true, files: true}
	}
	return m
}

// schema is the JSON Schema of a skill's arguments. What the skill takes alone
// is required.
func (m modes) schema() json.RawMessage {
	properties := map[string]any{"context_id": map[string]any{"type": "string", "maxLength": 512, "description": contextHelp}}
	var required []string
	if m.text {
		properties["message"] = map[string]any{"type": "string", "minLength": 1, "description": "What to tell the agent, in natural language."}
		required = []string{"message"}
	}
	if m.data {
		properties["data"] = map[string]any{"type": "object", "description": "Structured data for the agent."}
	}
	if m.files {
		properties["files"] = m.fileSchema()
	}
	switch {
	case m.text:
	case m.data && !m.files:
		required = []string{"data"}
	case m.files && !m.data:
		required = []string{"files"}
	}
	schema := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if required != nil {
		schema["required"] = required
	}
	raw, _ := json.Marshal(schema) // texts, numbers and maps of them always encode
	return rawjson.UnescapeHTML(raw)
}

const contextHelp = "Leave it out to go on with the conversation that this session has with the agent. " +
	`"new" begins another one. The id of an earlier conversation of this session goes back to it.`

func (m modes) fileSchema() map[string]any {
	help := "Files for the agent, each with bytes or uri."
	if len(m.mime) > 0 {
		help += " It takes " + bound(strings.Join(m.mime, ", "), 512) + "."
	}
	text := func(description string) map[string]any {
		return map[string]any{"type": "string", "description": description}
	}
	file := map[string]any{
		"type": "object",
		"properties": map[string]any{
			"name":  text("The file's name."),
			"mime":  text("The file's media type."),
			"bytes": map[string]any{"type": "string", "contentEncoding": "base64", "description": "The content, in base64."},
			"uri":   text("Where the agent finds the file, an absolute URI."),
		},
		"additionalProperties": false,
	}
	return map[string]any{"type": "array", "minItems": 1, "items": file, "description": help}
}

// slug makes a name that can stand in tool names of what an agent calls itself.
func slug(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "_"):
			b.WriteByte('_')
		}
	}
	out := strings.Trim(b.String()[:min(b.Len(), 48)], "_")
	if out == "" {
		return "agent"
	}
	return out
}
