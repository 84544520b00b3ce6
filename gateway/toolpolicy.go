package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	shape := func(value map[string]any) expr.Shape {
		members := map[string]expr.Shape{}
		for name := range value {
			members[name] = expr.Shape{}
		}
		return expr.ObjectOf(members)
	}
	tool := toolValue(&tools.Tool{})
	members := map[string]expr.Shape{}
	for name := range tool {
		members[name] = expr.Shape{}
	}
	members["safety"] = shape(safetyValue(&tools.Safety{}))
	return expr.NewEnv(map[string]expr.Shape{
		toolVariable:     expr.ObjectOf(members),
		identityVariable: shape(identityValue(context.Background())),
	})
})

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
	failed  func(tool string, err error) // is told of what could not be evaluated
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
	ok, err := p.program.True(context.Background(), map[string]any{toolVariable: toolValue(t), identityVariable: identityValue(ctx)})
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
	who := identityValue(ctx)
	for _, name := range readsOf(p.program) {
		b.WriteString(name)
		switch v := who[name].(type) {
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

// readsOf returns the members of the identity that an expression reads, sorted:
// all of them where it cannot be told.
func readsOf(p *expr.Program) []string {
	var names []string
	for _, path := range p.Reads() {
		switch {
		case len(path) == 0 || path[0] != identityVariable:
		case len(path) == 1:
			return []string{"scopes", "session", "tenant", "user"}
		default:
			names = append(names, path[1])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// identityValue is the caller on ctx as expressions see it.
func identityValue(ctx context.Context) map[string]any {
	who, _ := identity.From(ctx)
	scopes := slices.Sorted(slices.Values(identity.ScopesFrom(ctx)))
	return map[string]any{"tenant": who.TenantID, "user": who.UserID, "session": who.SessionID, "scopes": listValue(slices.Compact(scopes))}
}

// toolValue is a tool as expressions see it, in the words of the JSON protocol.
func toolValue(t *tools.Tool) map[string]any {
	return map[string]any{
		"name": t.Name, "title": t.Title, "version": t.Version, "description": t.Description,
		"source": string(t.Source), "source_name": t.SourceName, "namespace": t.Namespace, "category": t.Category,
		"transport": string(t.Transport), "kind": string(t.Kind), "loading": string(cmp.Or(t.Loading, tools.LoadingAlways)), "side_effect": string(t.SideEffects),
		"tags": listValue(t.Tags), "auth_scopes": listValue(t.AuthScopes), "tenants": listValue(t.Tenants),
		"safety": safetyValue(&t.Safety),
	}
}

// safetyValue is what is known of a tool's effects: true, false, or null where
// nobody said.
func safetyValue(s *tools.Safety) map[string]any {
	return map[string]any{
		"read_only": flagValue(s.ReadOnly), "destructive": flagValue(s.Destructive), "idempotent": flagValue(s.Idempotent),
		"open_world": flagValue(s.OpenWorld), "filesystem": flagValue(s.Filesystem), "process": flagValue(s.Process),
		"spend": flagValue(s.Spend), "needs_confirmation": flagValue(s.NeedsConfirmation),
	}
}

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
