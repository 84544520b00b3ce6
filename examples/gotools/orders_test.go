package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shop returns a catalog with the shop's tools, and the context of a caller of a tenant.
func shop(t *testing.T, tenant string) (context.Context, tools.ToolCatalog) {
	t.Helper()
	cat := tools.NewCatalog(tools.WithRequiredIdentity())
	if err := NewShop().Register(cat); err != nil {
		t.Fatal(err)
	}
	id := identity.Identity{TenantID: tenant, UserID: "ada", SessionID: "test"}
	return identity.With(t.Context(), id, "orders.write"), cat
}

func TestEachTenantFindsItsOrders(t *testing.T) {
	for tenant, want := range map[string]int{"local": 2, "acme": 1, "nobody": 0} {
		ctx, cat := shop(t, tenant)
		res, err := tools.Invoke(ctx, cat, "orders.find", nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(res.Value.(Orders).Orders); got != want {
			t.Errorf("%s finds %d orders, want %d", tenant, got, want)
		}
	}
}

func TestHiddenArgumentsAreFilledIn(t *testing.T) {
	ctx, cat := shop(t, "acme")
	d, _ := cat.Resolve("orders.cancel")
	var seen struct{ Properties map[string]any }
	if err := json.Unmarshal(d.Tool.ArgsSchema, &seen); err != nil {
		t.Fatal(err)
	}
	if len(seen.Properties) != 1 || seen.Properties["id"] == nil {
		t.Errorf("a model sees the arguments %v, want id alone", seen.Properties)
	}
	// Order 1 belongs to another tenant, whatever the caller claims.
	_, err := tools.Invoke(ctx, cat, "orders.cancel", []byte(`{"id":1,"tenant":"local"}`))
	var failed *tools.Error
	if !errors.As(err, &failed) || failed.Message != "there is no order 1" || failed.Attempts != 1 {
		t.Errorf("got %v", err)
	}
	if _, err := tools.Invoke(ctx, cat, "orders.cancel", []byte(`{"id":3}`)); err != nil {
		t.Error(err)
	}
}

func TestWithoutTheScopeTheToolIsNotThere(t *testing.T) {
	ctx, cat := shop(t, "acme")
	id, _ := identity.From(ctx)
	_, err := tools.Invoke(identity.With(t.Context(), id), cat, "orders.cancel", []byte(`{"id":3}`))
	if !errors.Is(err, tools.ErrToolNotFound) {
		t.Errorf("got %v, want ErrToolNotFound", err)
	}
}

func TestAnOrderIsCancelledByManyAtOnce(t *testing.T) {
	ctx, cat := shop(t, "local")
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if _, err := tools.Invoke(ctx, cat, "orders.cancel", []byte(`{"id":1}`)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestServe(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, ln) }()
	client, err := api.NewClient("http://"+ln.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var notes []string
	res, err := client.Call(t.Context(), api.CallRequest{Name: "orders.report", Notes: func(n api.Note) {
		notes = append(notes, fmt.Sprintf("%g of %g %s", n.Progress, n.Total, n.Message))
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(res.Structured), `{"lines":["order 1 is open","order 2 is shipped"]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(notes), "[1 of 2 orders 2 of 2 orders]"; got != want {
		t.Errorf("got the notes %s, want %s", got, want)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
