package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/internal/expr"
	"github.com/toolcrib/toolcrib/tools"
)

// The variables of a toolset's policy.
const (
	toolVariable     = "tool"
	identityVariable = "identity"
)

// policyEnv is what the policies of toolsets may read. It is made when the first
// is compiled, as that takes a noticeable part of the time in which the program
// starts.
var policyEnv = sync.OnceValues(func() (*expr.Env, error) {
	tool := shapeOf(toolMembers, &tools.Tool{})
	tool["safety"] = expr.ObjectOf(shapeOf(safetyMembers, &tools.Safety{}))
	who := shapeOf(identityMembers, context.Background())
	return expr.NewEnv(map[string]expr.Shape{toolVariable: expr.ObjectOf(tool), identityVariable: expr.ObjectOf(who)})
})

// shapeOf tells of each member whether it is a text or a list of texts, which its
// value of nothing shows. Members that may be null stay open.
func shapeOf[T any](members map[string]func(T) any, nothing T) map[string]expr.Shape {
	text := expr.TypeOf("string")
	shapes := map[string]expr.Shape{}
	for name, value := range members {
		switch value(nothing).(type) {
		case string:
			shapes[name] = text
		case []any:
			shapes[name] = expr.ListOf(text)
		default:
			shapes[name] = expr.Shape{}
		}
	}
	return shapes
}

// compileToolPolicy compiles the policy of a toolset, or returns nil for none. Its
// error says where in the expression the fault is.
func compileToolPolicy(source string) (*expr.Program, error) {
	if source == "" {
		return nil, nil
	}
	if strings.TrimSpace(source) == "" {
		return nil, errors.New("is blank; expected a CEL expression over tool and identity")
	}
	env, err := policyEnv()
	if err != nil {
		return nil, err
	}
	p, err := env.Compile(source)
	if err != nil {
		return nil, fmt.Errorf("at %w", err)
	}
	if t := p.Shape().Types(); t != nil && !slices.Contains(t, "boolean") {
		return nil, fmt.Errorf("gives a value of type %s; expected true or false", strings.Join(t, " or "))
	}
	return p, nil
}

// toolPolicy allows the tools for which an expression is true. It never changes.
type toolPolicy struct {
	program *expr.Program
	tool    []string                     // members that the expression reads
	who     []string                     // members of the identity that it reads, sorted
	failed  func(tool string, err error) // is told of what could not be evaluated
}

func newToolPolicy(p *expr.Program, failed func(tool string, err error)) *toolPolicy {
	return &toolPolicy{p, readsOf(p, toolVariable, toolMembers), readsOf(p, identityVariable, identityMembers), failed}
}

// Allow implements set.Policy for no caller in particular.
func (p *toolPolicy) Allow(t *tools.Tool) bool { return p.AllowCaller(context.Background(), t) }

// AllowCaller implements set.CallerPolicy. What cannot be evaluated is denied.
// It does not end with ctx, as the answer may be kept for others.
func (p *toolPolicy) AllowCaller(ctx context.Context, t *tools.Tool) bool {
	if t == nil {
		return false
	}
	if isMeans(t) {
		return true
	}
	ok, err := p.program.True(context.Background(), map[string]any{
		toolVariable: valueOf(toolMembers, p.tool, t), identityVariable: valueOf(identityMembers, p.who, ctx)})
	if err != nil {
		p.failed(t.Name, err)
		return false
	}
	return ok
}

// CallerClass implements set.ClassedPolicy: it is what the expression reads of the
// caller.
func (p *toolPolicy) CallerClass(ctx context.Context) string {
	var b strings.Builder
	for _, name := range p.who {
		b.WriteString(name)
		switch v := identityMembers[name](ctx).(type) {
		case string:
			b.WriteString(strconv.Quote(v))
		case []any:
			for _, scope := range v {
				b.WriteString(strconv.Quote(scope.(string)))
			}
		}
	}
	return b.String()
}

// readsOf returns the members of a variable that an expression reads, sorted: all
// of them where it cannot be told.
func readsOf[F any](p *expr.Program, variable string, members map[string]F) []string {
	var names []string
	for _, path := range p.Reads() {
		switch {
		case len(path) == 0 || path[0] != variable:
		case len(path) == 1:
			return slices.Sorted(maps.Keys(members))
		default:
			names = append(names, path[1])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// valueOf is some members of something as expressions see them.
func valueOf[T any](members map[string]func(T) any, names []string, of T) map[string]any {
	value := make(map[string]any, len(names))
	for _, name := range names {
		value[name] = members[name](of)
	}
	return value
}

// identityMembers are the caller as expressions see it.
var identityMembers = map[string]func(context.Context) any{
	"tenant":  func(ctx context.Context) any { who, _ := identity.From(ctx); return who.TenantID },
	"user":    func(ctx context.Context) any { who, _ := identity.From(ctx); return who.UserID },
	"session": func(ctx context.Context) any { who, _ := identity.From(ctx); return who.SessionID },
	"scopes": func(ctx context.Context) any {
		return listValue(slices.Compact(slices.Sorted(slices.Values(identity.ScopesFrom(ctx)))))
	},
}

// toolMembers are a tool as expressions see it, in the words of the JSON protocol.
var toolMembers = map[string]func(*tools.Tool) any{
	"name":        func(t *tools.Tool) any { return t.Name },
	"title":       func(t *tools.Tool) any { return t.Title },
	"version":     func(t *tools.Tool) any { return t.Version },
	"description": func(t *tools.Tool) any { return t.Description },
	"source":      func(t *tools.Tool) any { return string(t.Source) },
	"source_name": func(t *tools.Tool) any { return t.SourceName },
	"namespace":   func(t *tools.Tool) any { return t.Namespace },
	"category":    func(t *tools.Tool) any { return t.Category },
	"transport":   func(t *tools.Tool) any { return string(t.Transport) },
	"kind":        func(t *tools.Tool) any { return string(t.Kind) },
	"loading":     func(t *tools.Tool) any { return string(cmp.Or(t.Loading, tools.LoadingAlways)) },
	"side_effect": func(t *tools.Tool) any { return string(t.SideEffects) },
	"tags":        func(t *tools.Tool) any { return listValue(t.Tags) },
	"auth_scopes": func(t *tools.Tool) any { return listValue(t.AuthScopes) },
	"tenants":     func(t *tools.Tool) any { return listValue(t.Tenants) },
	"safety":      func(t *tools.Tool) any { return valueOf(safetyMembers, safetyNames, &t.Safety) },
}

// safetyMembers are what is known of a tool's effects: true, false, or null where
// nobody said.
var safetyMembers = map[string]func(*tools.Safety) any{
	"read_only":          func(s *tools.Safety) any { return flagValue(s.ReadOnly) },
	"destructive":        func(s *tools.Safety) any { return flagValue(s.Destructive) },
	"idempotent":         func(s *tools.Safety) any { return flagValue(s.Idempotent) },
	"open_world":         func(s *tools.Safety) any { return flagValue(s.OpenWorld) },
	"filesystem":         func(s *tools.Safety) any { return flagValue(s.Filesystem) },
	"process":            func(s *tools.Safety) any { return flagValue(s.Process) },
	"spend":              func(s *tools.Safety) any { return flagValue(s.Spend) },
	"needs_confirmation": func(s *tools.Safety) any { return flagValue(s.NeedsConfirmation) },
}

var safetyNames = slices.Collect(maps.Keys(safetyMembers))

func flagValue(f tools.Flag) any {
	if f == tools.Unset {
		return nil
	}
	return f == tools.Yes
}

func listValue(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}
