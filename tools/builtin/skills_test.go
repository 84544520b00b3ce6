package builtin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/builtin"
)

// shelf is a catalog with tools of two scopes and the tools about the given skills.
func shelf(t testing.TB, skills ...builtin.Skill) tools.LiveCatalog {
	t.Helper()
	cat := tools.NewCatalog().(tools.LiveCatalog)
	for name, scope := range map[string]string{"a": "", "b": "b", "c": "c"} {
		tool := tools.Tool{Name: name}
		if scope != "" {
			tool.AuthScopes = []string{scope}
		}
		if err := cat.Register(tools.ToolDescriptor{Tool: tool, Invoke: func(context.Context, json.RawMessage) (tools.ToolResult, error) {
			return tools.ToolResult{}, nil
		}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := builtin.RegisterSkills(cat, &builtin.SkillOptions{List: func() []builtin.Skill { return skills }}); err != nil {
		t.Fatal(err)
	}
	return cat
}

func holding(ctx context.Context, scopes ...string) context.Context {
	return identity.With(ctx, identity.Identity{TenantID: "t", UserID: "u", SessionID: "s"}, scopes...)
}

func answerTo(t testing.TB, ctx context.Context, cat tools.LiveCatalog, tool, args string, into any) {
	t.Helper()
	res, err := tools.Invoke(ctx, cat, tool, json.RawMessage(args))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(res.Text()), into); err != nil {
		t.Fatal(err)
	}
}

func TestSkillsOfACaller(t *testing.T) {
	cat := shelf(t,
		builtin.Skill{Name: "borrow", Description: "Borrow a book from the library.", Tags: []string{"books"}, Tools: []string{"a", "b"}},
		builtin.Skill{Name: "plain", Description: "Write a letter.", Instructions: "Be kind."},
		builtin.Skill{Name: "gone", Description: "Borrow a car.", Tools: []string{"nosuch"}},
	)
	for scopes, want := range map[string][]string{"": {"plain"}, "b": {"borrow", "plain"}, "c": {"plain"}} {
		var list builtin.SkillsResult
		answerTo(t, holding(t.Context(), scopes), cat, "skill_list", "", &list)
		var got []string
		for _, row := range list.Skills {
			got = append(got, row.Name)
		}
		if !slices.Equal(got, want) || list.Count != len(want) {
			t.Errorf("%q: got %v", scopes, got)
		}
	}
	ctx := holding(t.Context(), "b")
	var found builtin.SkillsResult
	answerTo(t, ctx, cat, "skill_search", `{"query":"borrow a book"}`, &found)
	if len(found.Skills) == 0 || found.Skills[0].Name != "borrow" {
		t.Errorf("got %+v", found)
	}
	answerTo(t, ctx, cat, "skill_search", `{"query":"letter","tags":["books"]}`, &found)
	if len(found.Skills) != 0 {
		t.Errorf("got %+v", found)
	}
	answerTo(t, holding(t.Context()), cat, "skill_search", `{"query":"borrow"}`, &found)
	if len(found.Skills) != 0 {
		t.Errorf("a caller found what it may not see: %+v", found)
	}
	var shown builtin.SkillGetResult
	answerTo(t, ctx, cat, "skill_get", `{"name":"plain"}`, &shown)
	if !shown.Found || shown.Instructions != "Be kind." {
		t.Errorf("got %+v", shown)
	}
	var hidden, unknown builtin.SkillGetResult
	answerTo(t, holding(t.Context()), cat, "skill_get", `{"name":"borrow"}`, &hidden)
	answerTo(t, holding(t.Context()), cat, "skill_get", `{"name":"nosuch"}`, &unknown)
	if hidden.Found || hidden.Error != unknown.Error {
		t.Errorf("got %+v and %+v", hidden, unknown)
	}
	if _, err := tools.Invoke(ctx, cat, "skill_search", json.RawMessage(`{"query":"x","limit":51}`)); err == nil {
		t.Error("a limit that is too large is accepted")
	}
}

// Whatever the skills and the scopes, a caller sees those whose every tool it sees.
func TestSkillsEqualTheirSpecification(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var skills []builtin.Skill
		for i := range rapid.IntRange(0, 12).Draw(rt, "skills") {
			skills = append(skills, builtin.Skill{Name: fmt.Sprintf("s%02d", i), Description: "word",
				Tools: rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "nosuch"}), 0, 3).Draw(rt, "tools")})
		}
		scopes := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"b", "c", "d"}), rapid.ID[string]).Draw(rt, "scopes")
		cat, ctx := shelf(t, skills...), holding(context.Background(), scopes...)
		visible := tools.VisibleNames(cat, tools.FilterFrom(ctx))
		var want []string
		for _, s := range skills {
			if !slices.ContainsFunc(s.Tools, func(name string) bool { return !slices.Contains(visible, name) }) {
				want = append(want, s.Name)
			}
		}
		var list, found builtin.SkillsResult
		answerTo(t, ctx, cat, "skill_list", "", &list)
		answerTo(t, ctx, cat, "skill_search", `{"query":"word","limit":50}`, &found)
		for what, got := range map[string]builtin.SkillsResult{"listed": list, "found": found} {
			var names []string
			for _, row := range got.Skills {
				names = append(names, row.Name)
			}
			slices.Sort(names)
			if strings.Join(names, " ") != strings.Join(want, " ") {
				rt.Fatalf("%s %v, want %v", what, names, want)
			}
		}
	})
}
