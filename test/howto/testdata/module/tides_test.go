package tides

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/toolcrib/toolcrib/events"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/inproc"
)

// One catalog, many callers at once: each must get its own answer.
func TestConcurrentReuse(t *testing.T) {
	cat := tools.NewCatalog()
	if err := RegisterTools(cat); err != nil {
		t.Fatal(err)
	}
	desc, ok := cat.Resolve("tides.get_level")
	if !ok {
		t.Fatal("tides.get_level is not registered")
	}
	const callers = 100
	var wg sync.WaitGroup
	wg.Add(callers)
	for i := 0; i < callers; i++ {
		go func(i int) {
			defer wg.Done()
			harbour := fmt.Sprintf("Harbour-%d", i)
			res, err := desc.Invoke(context.Background(), []byte(fmt.Sprintf(`{"harbour":%q}`, harbour)))
			if err != nil {
				t.Errorf("caller %d: %v", i, err)
				return
			}
			got, ok := res.Value.(LevelResult)
			if !ok || got.Harbour != harbour {
				t.Errorf("caller %d got %#v, want the level of %s", i, res.Value, harbour)
			}
		}(i)
	}
	wg.Wait()
}

// Cancelling one call must not disturb another.
func TestCancelledCallIsAlone(t *testing.T) {
	cat := tools.NewCatalog()
	if err := RegisterTools(cat); err != nil {
		t.Fatal(err)
	}
	desc, _ := cat.Resolve("tides.get_level")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := desc.Invoke(ctx, []byte(`{"harbour":"A"}`)); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled call = %v, want context.Canceled", err)
	}
	if _, err := desc.Invoke(context.Background(), []byte(`{"harbour":"B"}`)); err != nil {
		t.Errorf("the other call = %v", err)
	}
}

func TestSentinelsComeThrough(t *testing.T) {
	cat := tools.NewCatalog()
	if err := RegisterTools(cat); err != nil {
		t.Fatal(err)
	}
	if err := RegisterTools(cat); !errors.Is(err, tools.ErrToolDuplicateName) {
		t.Errorf("second registration = %v, want ErrToolDuplicateName", err)
	}
	desc, _ := cat.Resolve("tides.get_level")
	if _, err := desc.Invoke(context.Background(), []byte(`{"harbour":"Atlantis"}`)); !errors.Is(err, ErrUnknownHarbour) {
		t.Errorf("unknown harbour = %v, want ErrUnknownHarbour", err)
	}
	if _, err := desc.Invoke(context.Background(), []byte(`{"harbour":5}`)); !errors.Is(err, tools.ErrToolInvalidArgs) {
		t.Errorf("a number for a harbour = %v, want ErrToolInvalidArgs", err)
	}
}

// A type that JSON cannot carry is refused at registration.
func TestUnsupportedTypesFailLoudly(t *testing.T) {
	type channel struct {
		C chan int `json:"c"`
	}
	err := inproc.RegisterFunc[channel, LevelResult](tools.NewCatalog(), "tides.channel",
		func(context.Context, channel) (LevelResult, error) { return LevelResult{}, nil })
	if !errors.Is(err, inproc.ErrUnsupportedType) && !errors.Is(err, inproc.ErrSchemaBuild) {
		t.Errorf("registration = %v, want ErrUnsupportedType or ErrSchemaBuild", err)
	}
}

func TestIdentityAndBusRideOnTheContext(t *testing.T) {
	cat := tools.NewCatalog()
	if err := RegisterTools(cat); err != nil {
		t.Fatal(err)
	}
	registry, err := events.NewRegistry(tools.EventDefinitions()...)
	if err != nil {
		t.Fatal(err)
	}
	caller := identity.Quadruple{Identity: identity.Identity{TenantID: "harbours", UserID: "u", SessionID: "s"}, RunID: "r7"}
	ctx := events.With(identity.WithQuadruple(context.Background(), caller), events.NewBus(registry))
	desc, _ := cat.Resolve("tides.who_asks")
	for _, args := range []json.RawMessage{nil, json.RawMessage(`null`), json.RawMessage(`{}`)} {
		res, err := desc.Invoke(ctx, args)
		if err != nil {
			t.Fatalf("arguments %q: %v", args, err)
		}
		if got, _ := res.Value.(CallerResult); got.Tenant != "harbours" || got.Run != "r7" {
			t.Errorf("arguments %q: caller = %#v", args, res.Value)
		}
	}
}
