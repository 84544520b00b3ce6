package mcptool

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/tools"
)

type tryPeer struct{}

func (tryPeer) Progress(_ context.Context, p tools.ProgressNote) error { fmt.Printf("  progress %+v %s\n", p.Progress, p.Raw); return nil }
func (tryPeer) Log(_ context.Context, p tools.LogNote) error           { fmt.Printf("  log %s %s\n", p.Level, p.Data); return nil }
func (tryPeer) Ask(context.Context, tools.Question) (tools.Answer, error) {
	return tools.Answer{}, tools.ErrAskUnsupported
}

func TestTry(t *testing.T) {
	none := NoPrefix
	cfg := &Config{Name: "x", Prefix: &none, Version: os.Getenv("TRY_VERSION"), Logger: slog.New(slog.NewTextHandler(os.Stdout, nil))}
	if u := os.Getenv("TRY_URL"); u != "" {
		cfg.URL = u
	} else {
		cfg.Command = strings.Fields(os.Getenv("TRY_CMD"))
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	ctx := context.Background()
	if err := s.Connect(ctx); err != nil {
		t.Fatal(err)
	}
	fmt.Println("connected in", time.Since(start))
	ds, err := s.Discover(ctx)
	if err != nil {
		t.Fatal(err)
	}
	cat := tools.NewCatalog().(tools.LiveCatalog)
	ch := cat.SwapSource(s.SourceID(), ds)
	fmt.Println(len(ds), "tools; refused", ch.Refused, s.Refused())
	for _, d := range ds {
		fmt.Printf("  %s ro=%v %d+%d bytes\n", d.Tool.Name, d.Tool.Safety.ReadOnly, len(d.Tool.ArgsSchema), len(d.Tool.OutSchema))
	}
	var calls [][2]string
	if err := json.Unmarshal([]byte(os.Getenv("TRY_CALLS")), &calls); err != nil {
		t.Fatal(err)
	}
	for _, c := range calls {
		start := time.Now()
		r, err := tools.Invoke(tools.WithEntrance(ctx, tools.Entrance{Peer: tryPeer{}, Meta: json.RawMessage(`{"k":1}`)}), cat, c[0], json.RawMessage(c[1]))
		fmt.Println("call", c[0], time.Since(start), "err:", err, "isError", r.IsError, "wire", bound(string(r.Wire), 300))
	}
	fmt.Printf("%+v\n", s.Status())
	start = time.Now()
	fmt.Println("close", s.Close(ctx), time.Since(start))
}
