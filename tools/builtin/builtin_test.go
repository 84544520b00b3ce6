package builtin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/builtin"
)

func Example() {
	cat := tools.NewCatalog()
	if err := builtin.Register(cat, "text.echo"); err != nil {
		fmt.Println(err)
		return
	}
	res, err := tools.Invoke(context.Background(), cat, "text.echo", json.RawMessage(`{"text":"hello"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	out, _ := res.JSON()
	fmt.Println(string(out))
	// Output: {"text":"hello"}
}

func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // where it is midnight of 2000-01-01 in UTC
		for args, want := range map[string]string{
			``:                        `{"now":"2000-01-01T00:00:00Z","unix_ms":946684800000,"timezone":"UTC"}`,
			`{}`:                      `{"now":"2000-01-01T00:00:00Z","unix_ms":946684800000,"timezone":"UTC"}`,
			`{"tz":"Asia/Kathmandu"}`: `{"now":"2000-01-01T05:45:00+05:45","unix_ms":946684800000,"timezone":"Asia/Kathmandu"}`,
			`{"tz":"UTC"}`:            `{"now":"2000-01-01T00:00:00Z","unix_ms":946684800000,"timezone":"UTC"}`,
		} {
			res, err := tools.Invoke(t.Context(), catalog(t), "clock.now", json.RawMessage(args))
			if err != nil {
				t.Fatalf("%s: %v", args, err)
			}
			if out, _ := res.JSON(); string(out) != want {
				t.Errorf("%s = %s, want %s", args, out, want)
			}
		}
	})
}

func TestClockRefuses(t *testing.T) {
	for _, args := range []string{`{"tz":"Mars/Olympus"}`, `{"tz":"Local"}`, `{"tz":"../../etc/passwd"}`} {
		_, err := tools.Invoke(t.Context(), catalog(t), "clock.now", json.RawMessage(args))
		if err == nil || !strings.Contains(err.Error(), "expected an IANA name") || tools.ClassifyError(err, false) != tools.ErrClassPermanent {
			t.Errorf("%s: %v", args, err)
		}
	}
	for _, args := range []string{`{"tz":1}`, `{"zone":"UTC"}`} {
		if _, err := tools.Invoke(t.Context(), catalog(t), "clock.now", json.RawMessage(args)); !errors.Is(err, tools.ErrToolInvalidArgs) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func TestRegisterNamesWhatItKnows(t *testing.T) {
	err := builtin.Register(tools.NewCatalog(), "clock.now", "clock.then")
	if !errors.Is(err, builtin.ErrUnknown) || !strings.Contains(err.Error(), `"clock.then"; expected one of clock.now, text.echo`) {
		t.Errorf("err = %v", err)
	}
	if err := builtin.Register(tools.NewCatalog(), "text.echo", "text.echo"); !errors.Is(err, tools.ErrToolDuplicateName) {
		t.Errorf("twice: %v", err)
	}
}

func catalog(t *testing.T) tools.ToolCatalog {
	t.Helper()
	cat := tools.NewCatalog()
	if err := builtin.Register(cat, builtin.Names()...); err != nil {
		t.Fatal(err)
	}
	return cat
}
