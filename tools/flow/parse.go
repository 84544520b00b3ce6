package flow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/parser"
)

// declared is a flow as YAML states it.
type declared struct {
	Name        string         `yaml:"name"`
	Description string         `yaml:"description"`
	Inputs      map[string]any `yaml:"inputs"`
	Output      any            `yaml:"output"`
	Entry       string         `yaml:"entry"`
	Exit        string         `yaml:"exit"`
	Parallel    int            `yaml:"parallel"`
	Tags        []string       `yaml:"tags"`
	Budget      struct {
		DeadlineMS int64   `yaml:"deadline_ms"`
		Hops       int     `yaml:"hop_budget"`
		Calls      int     `yaml:"calls"`
		Cost       float64 `yaml:"cost_cap"`
	} `yaml:"budget"`
	Nodes []declaredNode `yaml:"nodes"`
}

type declaredNode struct {
	ID     string         `yaml:"id"`
	Tool   string         `yaml:"tool"`
	Flow   *declared      `yaml:"flow"`
	Ask    *declaredAsk   `yaml:"ask"`
	Inputs any            `yaml:"inputs"`
	Next   []declaredEdge `yaml:"next"`
	Join   Join           `yaml:"join"`
	Each   *struct {
		Items    string `yaml:"items"`
		Limit    int    `yaml:"limit"`
		Parallel int    `yaml:"parallel"`
	} `yaml:"for_each"`
	TimeoutMS int64 `yaml:"timeout_ms"`
	Retry     struct {
		Attempts  int   `yaml:"attempts"`
		BackoffMS int64 `yaml:"backoff_ms"`
	} `yaml:"retry"`
	OnError struct {
		Do   Handling `yaml:"do"`
		Node string   `yaml:"node"`
	} `yaml:"on_error"`
	Undo string  `yaml:"undo"`
	Cost float64 `yaml:"cost"`
}

type declaredAsk struct {
	Message string         `yaml:"message"`
	Schema  map[string]any `yaml:"schema"`
}

type declaredEdge struct {
	To   string `yaml:"to"`
	When string `yaml:"when"`
}

// source is the document that a definition was read from, for the places in
// errors.
type source struct {
	file string
	doc  []byte
	root string // YAML path of the definition in the document
}

// ParseYAML reads a definition. An unknown key is an error. Errors, those of
// Compose too, name the file, line and column.
func ParseYAML(file string, doc []byte) (Definition, error) {
	var d declared
	if err := yaml.NewDecoder(bytes.NewReader(doc), yaml.DisallowUnknownField()).Decode(&d); err != nil {
		if at, ok := errors.AsType[yaml.Error](err); ok && at.GetToken() != nil {
			where := at.GetToken().Position
			return Definition{}, fmt.Errorf("%w: %s:%d:%d: %s", ErrInvalid, file, where.Line, where.Column, at.GetMessage())
		}
		return Definition{}, fmt.Errorf("%w: %s: %w", ErrInvalid, file, err)
	}
	return d.definition(&source{file, doc, "$"})
}

func (d *declared) definition(src *source) (Definition, error) {
	def := Definition{Name: d.Name, Description: d.Description, Output: d.Output, Entry: d.Entry, Exit: d.Exit, Parallel: d.Parallel, Tags: d.Tags, source: src,
		Budget: Budget{Deadline: ms(d.Budget.DeadlineMS), HopBudget: d.Budget.Hops, Calls: d.Budget.Calls, CostCap: d.Budget.Cost}}
	if d.Inputs != nil {
		raw, err := json.Marshal(d.Inputs)
		if err != nil {
			return def, def.fault("inputs", "%v", err)
		}
		def.Inputs = raw
	}
	for i := range d.Nodes {
		n, err := d.Nodes[i].node(&def, i)
		if err != nil {
			return def, err
		}
		def.Nodes = append(def.Nodes, n)
	}
	return def, nil
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func (d *declaredNode) node(def *Definition, i int) (Node, error) {
	n := Node{ID: d.ID, Tool: d.Tool, Inputs: d.Inputs, Join: d.Join, Timeout: ms(d.TimeoutMS), Undo: d.Undo, Cost: d.Cost,
		Retry: Retry{Attempts: d.Retry.Attempts, Backoff: ms(d.Retry.BackoffMS)}, OnError: OnError{Do: d.OnError.Do, Node: d.OnError.Node}}
	for _, e := range d.Next {
		n.Next = append(n.Next, Edge(e))
	}
	if d.Each != nil {
		n.ForEach = &ForEach{Items: d.Each.Items, Limit: d.Each.Limit, Parallel: d.Each.Parallel}
	}
	if d.Ask != nil {
		n.Ask = &Question{Message: d.Ask.Message}
		if d.Ask.Schema != nil {
			raw, err := json.Marshal(d.Ask.Schema)
			if err != nil {
				return n, def.fault(nodePath(i)+".ask.schema", "%v", err)
			}
			n.Ask.Schema = raw
		}
	}
	if d.Flow != nil {
		nested, err := d.Flow.definition(&source{def.source.file, def.source.doc, def.source.root + "." + nodePath(i) + ".flow"})
		if err != nil {
			return n, err
		}
		n.Flow = &nested
	}
	return n, nil
}

// fault states what is wrong with a definition, and where.
func (d *Definition) fault(path, format string, args ...any) error {
	what := fmt.Errorf(format, args...)
	if d.source == nil {
		return fmt.Errorf("%w %q: %s: %w", ErrInvalid, d.Name, path, what)
	}
	line, column := d.source.position(path)
	return fmt.Errorf("%w %q: %s:%d:%d: %s: %w", ErrInvalid, d.Name, d.source.file, line, column, path, what)
}

// position returns the place of the node at a path, or of the nearest one around
// it that the document has.
func (s *source) position(path string) (line, column int) {
	file, err := parser.ParseBytes(s.doc, 0)
	if err != nil {
		return 1, 1
	}
	for at := s.root + "." + path; ; at = shorter(at) {
		if p, err := yaml.PathString(at); err == nil {
			if node, err := p.FilterFile(file); err == nil && node != nil {
				where := node.GetToken().Position
				return where.Line, where.Column
			}
		}
		if at == "$" {
			return 1, 1
		}
	}
}

// shorter drops the last step of a YAML path.
func shorter(path string) string {
	for i := len(path) - 1; i > 0; i-- {
		if path[i] == '.' || path[i] == '[' {
			return path[:i]
		}
	}
	return "$"
}
