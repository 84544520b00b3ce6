package identity_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/toolcrib/toolcrib/identity"
)

var ada = identity.Identity{TenantID: "acme", UserID: "u1", SessionID: "s1"}

func Example() {
	ctx := identity.With(context.Background(), ada, "weather:read")
	ctx = identity.WithRun(ctx, "run-7")
	q := identity.MustQuadrupleFrom(ctx)
	fmt.Println(q.TenantID, q.UserID, q.SessionID, q.RunID, identity.ScopesFrom(ctx).Has("weather:read"))
	// Output: acme u1 s1 run-7 true
}

func TestFromBareContext(t *testing.T) {
	ctx := context.Background()
	if _, ok := identity.From(ctx); ok {
		t.Error("From found an identity on a bare context")
	}
	if _, ok := identity.From(identity.WithRun(ctx, "r")); ok {
		t.Error("a run alone counts as an identity")
	}
	defer func() {
		if err, _ := recover().(error); !errors.Is(err, identity.ErrMissing) {
			t.Errorf("panic value = %v, want ErrMissing", err)
		}
	}()
	identity.MustQuadrupleFrom(ctx)
}

func TestWithReplacesWhole(t *testing.T) {
	ctx := identity.WithRun(identity.With(context.Background(), ada, "a", "b"), "r")
	other := identity.Identity{TenantID: "other", UserID: "u2", SessionID: "s2"}
	ctx = identity.With(ctx, other)
	q, _ := identity.QuadrupleFrom(ctx)
	if q.Identity != other || q.RunID != "" || len(identity.ScopesFrom(ctx)) != 0 {
		t.Errorf("something of the first caller remained: %+v %v", q, identity.ScopesFrom(ctx))
	}
}

func TestScopes(t *testing.T) {
	s := identity.NewScopes("b", "a", "", "b")
	if len(s) != 2 || !s.Has("a") || !s.Has("b") || s.Has("") {
		t.Errorf("NewScopes = %v", s)
	}
	for _, c := range []struct {
		required []string
		want     bool
	}{{nil, true}, {[]string{"a"}, true}, {[]string{"a", "c"}, false}} {
		if got := s.HasAll(c.required); got != c.want {
			t.Errorf("HasAll(%v) = %v", c.required, got)
		}
	}
}

func TestComplete(t *testing.T) {
	if !ada.Complete() || (identity.Identity{TenantID: "t", UserID: "u"}).Complete() {
		t.Error("Complete must demand all three parts")
	}
}
