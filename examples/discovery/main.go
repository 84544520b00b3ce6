// Command discovery shows what a model is declared before and after it finds a tool.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/builtin"
	"github.com/toolcrib/toolcrib/tools/inproc"
	"github.com/toolcrib/toolcrib/view"
)

type city struct {
	City string `json:"city"`
}

type report struct {
	Text string `json:"text"`
}

func weather(_ context.Context, in city) (report, error) {
	return report{"It rains in " + in.City + "."}, nil
}

func tides(_ context.Context, in city) (report, error) {
	return report{"High water in " + in.City + " at noon."}, nil
}

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(out io.Writer) error {
	cat := tools.NewCatalog().(tools.LiveCatalog)
	if err := inproc.RegisterFunc(cat, "weather.get_current", weather, tools.WithLoading(tools.LoadingAlways),
		tools.WithDescription("Tell the weather of a city.")); err != nil {
		return err
	}
	if err := inproc.RegisterFunc(cat, "sea.get_tides", tides, tools.WithLoading(tools.LoadingDeferred),
		tools.WithDescription("Tell when the water is high at a harbour.")); err != nil {
		return err
	}

	discovery := view.NewDiscovery(nil, &view.DiscoveryOptions{Mode: view.ModeAuto})
	if err := builtin.RegisterMeta(cat, &builtin.MetaOptions{Memory: discovery.Memory()}); err != nil {
		return err
	}

	ctx := identity.With(context.Background(), identity.Identity{TenantID: "acme", UserID: "ada", SessionID: "chat-1"})
	for _, query := range []string{"when is high tide", ""} {
		declared, err := discovery.Declared(ctx, cat)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, "declared:", declared.Names())
		if query == "" {
			break
		}
		args, err := json.Marshal(builtin.SearchArgs{Query: query})
		if err != nil {
			return err
		}
		if _, err := tools.Invoke(ctx, cat, builtin.SearchName, args); err != nil {
			return err
		}
	}
	return nil
}
