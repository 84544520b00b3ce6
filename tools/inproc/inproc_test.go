package inproc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/inproc"
)

type weatherArgs struct {
	City string `json:"city" jsonschema:"description=Where,minLength=1"`
	Unit string `json:"unit,omitempty" jsonschema:"enum=c,enum=f"`
}

type weather struct {
	Temperature float64 `json:"temperature"`
	Text        string  `json:"text"`
}

func current(_ context.Context, in weatherArgs) (weather, error) {
	return weather{21.5, "Sunny in " + in.City}, nil
}

func Example() {
	cat := tools.NewCatalog()
	err := inproc.RegisterFunc(cat, "weather.current", current,
		tools.WithDescription("Returns the weather of a city."), tools.WithSideEffect(tools.SideEffectRead))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	res, err := tools.Invoke(ctx, cat, "weather.current", json.RawMessage(`{"city":"Oslo"}`))
	fmt.Println(res.Value.(weather).Text, string(res.Structured), err)
	_, err = tools.Invoke(ctx, cat, "weather.current", json.RawMessage(`{"city":"Oslo","unit":"k"}`))
	fmt.Println(errors.Is(err, tools.ErrToolInvalidArgs), err)
	// Output:
	// Sunny in Oslo {"temperature":21.5,"text":"Sunny in Oslo"} <nil>
	// true tools: invalid arguments: "weather.current": /unit: expected one of "c", "f"
}

func register[A, R any](t *testing.T, fn inproc.Func[A, R], opts ...tools.DescriptorOption) tools.ToolCatalog {
	t.Helper()
	cat := tools.NewCatalog()
	if err := inproc.RegisterFunc(cat, "t", fn, opts...); err != nil {
		t.Fatal(err)
	}
	return cat
}

func call(t *testing.T, cat tools.ToolCatalog, args string) tools.ToolResult {
	t.Helper()
	res, err := tools.Invoke(context.Background(), cat, "t", json.RawMessage(args))
	if err != nil {
		t.Fatalf("%s: %v", args, err)
	}
	return res
}

func TestNoArguments(t *testing.T) {
	cat := register(t, func(context.Context, struct{}) (string, error) { return "pong", nil })
	for _, args := range []string{"", "null", "{}"} {
		if res := call(t, cat, args); res.Value != "pong" {
			t.Errorf("%q: %v", args, res.Value)
		}
	}
	if _, err := tools.Invoke(context.Background(), cat, "t", json.RawMessage(`{"x":1}`)); !errors.Is(err, tools.ErrToolInvalidArgs) {
		t.Errorf("an unknown argument: %v", err)
	}
}

func TestKeysMatchExactly(t *testing.T) {
	cat := register(t, current)
	for _, args := range []string{`{"City":"x"}`, `{"CITY":"x"}`, `{"city":"x","UNIT":"c"}`, `{"city":"x","city":"y"}`} {
		if _, err := tools.Invoke(context.Background(), cat, "t", json.RawMessage(args)); !errors.Is(err, tools.ErrToolInvalidArgs) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func TestDefaultsAndPlainIntegers(t *testing.T) {
	type args struct {
		N     int    `json:"n,omitempty" jsonschema:"default=7"`
		Label string `json:"label,omitempty" jsonschema:"default=none"`
	}
	cat := register(t, func(_ context.Context, in args) (string, error) { return fmt.Sprint(in.N, in.Label), nil })
	for sent, want := range map[string]string{``: "7none", `{"n":0}`: "0none", `{"label":"x","n":2}`: "2x", `{"n":3.0}`: "3none", `{"n":2e1}`: "20none"} {
		if got := call(t, cat, sent).Value; got != want {
			t.Errorf("%s: %v, want %s", sent, got, want)
		}
	}
}

func TestTimesAreCheckedBeforeTheCall(t *testing.T) {
	type args struct {
		Window struct {
			From time.Time `json:"from"`
		} `json:"window"`
	}
	cat := register(t, func(_ context.Context, in args) (string, error) { return in.Window.From.String(), nil })
	call(t, cat, `{"window":{"from":"2026-01-01T00:00:00Z"}}`)
	_, err := tools.Invoke(context.Background(), cat, "t", json.RawMessage(`{"window":{"from":"yesterday"}}`))
	var te *tools.Error
	if !errors.As(err, &te) || !errors.Is(err, tools.ErrToolInvalidArgs) || te.Attempts != 0 || te.SafeMessage() != `/window/from: expected the format "date-time"` {
		t.Errorf("%v", err)
	}
}

func TestResultsOfBlocks(t *testing.T) {
	cat := register(t, func(context.Context, struct{}) (tools.ToolResult, error) {
		return tools.ToolResult{Content: []tools.Content{tools.TextContent("a"), tools.ImageContent([]byte{1}, "image/png")}}, nil
	})
	if res := call(t, cat, ""); len(res.Content) != 2 || res.Text() != "a" || res.Structured != nil {
		t.Errorf("%+v", res)
	}
	if d, _ := cat.Resolve("t"); d.Tool.OutSchema != nil {
		t.Errorf("output schema %s", d.Tool.OutSchema)
	}
}

type sub struct {
	X int `json:"x"`
}

type everything struct {
	sub
	P    *sub            `json:"p"`
	List []sub           `json:"list"`
	Map  map[string]int  `json:"map"`
	Num  json.Number     `json:"num,omitempty"`
	Raw  json.RawMessage `json:"raw,omitempty"`
	At   time.Time       `json:"at"`
	For  time.Duration   `json:"for"`
	Blob []byte          `json:"blob"`
	Str  int64           `json:"str,string"`
	Zero time.Time       `json:"zero,omitzero"`
	Pair [2]int          `json:"pair"`
	Next *everything     `json:"next,omitempty"`
}

func TestValuesSurvive(t *testing.T) {
	cat := register(t, func(_ context.Context, in everything) (everything, error) { return in, nil })
	values := []everything{
		{},
		{sub: sub{1}, P: &sub{2}, List: []sub{{3}}, Map: map[string]int{"a": 1}, Num: "9007199254740993", Raw: json.RawMessage(`{"k":[1,null]}`),
			At: time.Unix(1, 2).UTC(), For: time.Second, Blob: []byte("blob"), Str: 1 << 60, Zero: time.Unix(3, 0).UTC(), Pair: [2]int{1, 2},
			Next: &everything{Num: "1.50"}},
	}
	for _, v := range values {
		enc, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		res := call(t, cat, string(enc))
		want, _ := json.Marshal(v)
		if string(res.Structured) != string(want) {
			t.Errorf("sent %s\ngot  %s", want, res.Structured)
		}
		if reflect.TypeOf(res.Value) != reflect.TypeFor[everything]() {
			t.Errorf("value is a %T", res.Value)
		}
	}
}

func TestNilResultsPass(t *testing.T) {
	type result struct {
		List []string       `json:"list"`
		Map  map[string]int `json:"map"`
		P    *int           `json:"p"`
	}
	if got := string(call(t, register(t, func(context.Context, struct{}) (result, error) { return result{}, nil }), "").Structured); got != `{"list":null,"map":null,"p":null}` {
		t.Error(got)
	}
	if got := string(call(t, register(t, func(context.Context, struct{}) ([]string, error) { return nil, nil }), "").Structured); got != `null` {
		t.Error(got)
	}
	if got := string(call(t, register(t, func(context.Context, struct{}) (*result, error) { return nil, nil }), "").Structured); got != `null` {
		t.Error(got)
	}
}

type node struct {
	Children []node `json:"children,omitempty"`
	Name     string `json:"name"`
}

func TestRecursion(t *testing.T) {
	cat := register(t, func(_ context.Context, in node) (node, error) { return in, nil })
	call(t, cat, `{"name":"a","children":[{"name":"b","children":[{"name":"c"}]}]}`)
	if _, err := tools.Invoke(context.Background(), cat, "t", json.RawMessage(`{"name":"a","children":[{"name":"b","children":[{"nom":"c"}]}]}`)); !errors.Is(err, tools.ErrToolInvalidArgs) {
		t.Errorf("a wrong leaf: %v", err)
	}
}

func refused[A, R any](t *testing.T, want error) {
	t.Helper()
	err := inproc.RegisterFunc(tools.NewCatalog(), "t", func(context.Context, A) (R, error) { panic("never") })
	if !errors.Is(err, want) {
		t.Errorf("%v → %v: %v, want %v", reflect.TypeFor[A](), reflect.TypeFor[R](), err, want)
	}
	if err != nil && !errors.Is(err, inproc.ErrSchemaBuild) {
		t.Errorf("%v is not an ErrSchemaBuild", err)
	}
}

func TestUnsupportedTypes(t *testing.T) {
	type ok struct{}
	u := inproc.ErrUnsupportedType
	refused[struct{ C chan int }, ok](t, u)
	refused[struct{ F func() }, ok](t, u)
	refused[struct{ A any }, ok](t, u)
	refused[struct{ M map[string]any }, ok](t, u)
	refused[struct{ L []any }, ok](t, u)
	refused[struct{ C complex128 }, ok](t, u)
	refused[struct{ M map[float64]int }, ok](t, u)
	refused[ok, map[string]any](t, u)
	refused[ok, any](t, u)
	refused[ok, struct{ E error }](t, u)
	refused[string, ok](t, u)
	refused[[]int, ok](t, u)
	b := inproc.ErrSchemaBuild
	refused[struct {
		N int `jsonschema:"minimum=abc"`
	}, ok](t, b)
	refused[struct {
		S string `jsonschema:"minimum=1"`
	}, ok](t, b)
	refused[struct {
		N int `jsonschema:"default=x"`
	}, ok](t, b)
	refused[struct {
		N int `jsonschema:"enum=a"`
	}, ok](t, b)
}

func TestRegistrationErrorsNameThePlace(t *testing.T) {
	err := inproc.RegisterFunc(tools.NewCatalog(), "t", func(context.Context, struct {
		Deep struct {
			Ch chan int `json:"ch"`
		} `json:"deep"`
	}) (string, error) {
		return "", nil
	})
	if err == nil || !strings.Contains(err.Error(), "Deep.Ch") && !strings.Contains(err.Error(), "deep.ch") {
		t.Errorf("%v does not name the field", err)
	}
	if err := inproc.RegisterFunc[struct{}, string](tools.NewCatalog(), "t", nil); !errors.Is(err, tools.ErrToolInvalid) {
		t.Errorf("a nil function: %v", err)
	}
	cat := register(t, current)
	if err := inproc.RegisterFunc(cat, "t", current); !errors.Is(err, tools.ErrToolDuplicateName) {
		t.Errorf("a duplicate: %v", err)
	}
}

func TestErrorsKeepTheirChain(t *testing.T) {
	unknown := errors.New("unknown city")
	cat := register(t, func(context.Context, struct{}) (string, error) {
		return "", fmt.Errorf("weather: %w", unknown)
	}, tools.WithPolicy(tools.ToolPolicy{MaxRetries: -1}))
	_, err := tools.Invoke(context.Background(), cat, "t", nil)
	var te *tools.Error
	if !errors.Is(err, unknown) || !errors.As(err, &te) || te.SafeMessage() != "weather: unknown city" {
		t.Errorf("%v", err)
	}
}

type odd struct{ F func() }

func (odd) MarshalJSON() ([]byte, error) { return nil, errors.New("cannot") }

func TestResultThatCannotBeEncoded(t *testing.T) {
	n := 0
	cat := register(t, func(context.Context, struct{}) (odd, error) { n++; return odd{}, nil })
	if _, err := tools.Invoke(context.Background(), cat, "t", nil); !errors.Is(err, tools.ErrToolInvalidOutput) || n != 1 {
		t.Errorf("%v after %d attempts", err, n)
	}
}

// decoded holds one of each kind of value that decoding treats specially.
type decoded struct {
	Raw  json.RawMessage
	At   time.Time
	Blob []byte
	Map  map[int]string
	P    *int
	Str  int `json:",string"`
	Pair [2]int
	F32  float32
	U8   uint8
}

// FuzzDecode holds the decoder of arguments to encoding/json.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{}`, `{"Raw":{"a": 1}}`, `{"At":"2020-01-01T00:00:00Z"}`, `{"Blob":"aGk="}`, `{"Map":{"1":"a"}}`, `{"P":9}`,
		`{"Str":"5"}`, `{"Str":5}`, `{"Pair":[1]}`, `{"Pair":[1,2,3]}`, `{"F32":1e40}`, `{"U8":256}`, `{"U8":1e1}`, `{"P":null}`, `{"At":"x"}`, `{"pair":[1,2]}`} {
		f.Add(s)
	}
	decode := inproc.Decoder(reflect.TypeFor[decoded]())
	f.Fuzz(func(t *testing.T, doc string) {
		var want, got decoded
		wantErr, gotErr := json.Unmarshal([]byte(doc), &want), decode([]byte(doc), &got)
		if (wantErr == nil) != (gotErr == nil) {
			t.Fatalf("%s: encoding/json says %v, the decoder %v", doc, wantErr, gotErr)
		}
		if diff := cmp.Diff(want, got); wantErr == nil && diff != "" {
			t.Errorf("%s:\n%s", doc, diff)
		}
	})
}
