package flow

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/toolcrib/toolcrib/internal/expr"
	"github.com/toolcrib/toolcrib/internal/yamldoc"
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

// ParseYAML reads a definition. An unknown key is an error. Errors, those of
// Compose too, name the file, line and column.
func ParseYAML(file string, doc []byte) (Definition, error) {
	var d declared
	from := &yamldoc.Doc{File: file, Data: doc}
	if err := from.Decode(&d, true); err != nil {
		return Definition{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return d.definition(from, "")
}

func (d *declared) definition(doc *yamldoc.Doc, root string) (Definition, error) {
	def := Definition{Name: d.Name, Description: d.Description, Output: d.Output, Entry: d.Entry, Exit: d.Exit, Parallel: d.Parallel, Tags: d.Tags, doc: doc, root: root,
		Budget: Budget{Deadline: ms(d.Budget.DeadlineMS), HopBudget: d.Budget.Hops, Calls: d.Budget.Calls, CostCap: d.Budget.Cost}}
	if d.Inputs != nil {
		raw, err := json.Marshal(d.Inputs)
		if err != nil {
			return def, def.fault("inputs", "%w", err)
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

// ms is a number of milliseconds; one that is too large is the longest time there
// is, in whose stead another would come out otherwise.
func ms(n int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Millisecond)
	return time.Duration(max(-most, min(n, most))) * time.Millisecond
}

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
				return n, def.fault(nodePath(i)+".ask.schema", "%w", err)
			}
			n.Ask.Schema = raw
		}
	}
	if d.Flow != nil {
		nested, err := d.Flow.definition(def.doc, def.inner(i))
		if err != nil {
			return n, err
		}
		n.Flow = &nested
	}
	return n, nil
}

// inner is the path to the definition that is node i.
func (d *Definition) inner(i int) string { return d.root + nodePath(i) + ".flow." }

// fault states what is wrong with the value at a path of a definition, and where
// it stands. An error among the arguments that knows its place inside the value
// makes the path longer by that.
func (d *Definition) fault(path, format string, args ...any) error {
	for _, arg := range args {
		if err, ok := arg.(error); ok {
			if inner, ok := errors.AsType[*expr.Misplaced](err); ok {
				path += inner.Path()
			}
		}
	}
	return fmt.Errorf("%w %q: %w", ErrInvalid, d.Name, d.doc.Fault(d.root+path, fmt.Errorf(format, args...)))
}

// Load reads all definitions of a folder: each *.yaml and *.yml file in it and
// below, apart from folders whose names begin with a dot. They are sorted by name. What is wrong with several files is reported at
// once; two flows of one name are an error.
func Load(folder fs.FS) ([]Definition, error) {
	var (
		list   []Definition
		faults []error
	)
	files := map[string]string{}
	err := yamldoc.Each(folder, isYAML, func(file string, data []byte, err error) {
		var def Definition
		if err == nil {
			def, err = ParseYAML(file, data)
		}
		switch other, taken := files[def.Name]; {
		case err != nil:
			faults = append(faults, err)
		case taken:
			faults = append(faults, def.fault("name", "the name is that of %s too", other))
		default:
			files[def.Name] = file
			list = append(list, def)
		}
	})
	if err = errors.Join(append(faults, err)...); err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b Definition) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

func isYAML(file string) bool {
	ext := path.Ext(file)
	return ext == ".yaml" || ext == ".yml"
}
