package adapter_test

import (
	"encoding/json"
	"testing"

	"github.com/toolcrib/toolcrib/adapter"
	"github.com/toolcrib/toolcrib/tools"
)

func TestBodyIsLaidOverTheCallersOwn(t *testing.T) {
	a, err := adapter.New(adapter.OpenAI, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := a.Declare([]tools.Tool{{Name: "a", ArgsSchema: json.RawMessage(`{"type":"object","properties":{"n":{"const":9007199254740993}}}`)}})
	body, err := d.Body(map[string]any{"model": "m", "tools": nil})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]json.RawMessage
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	if string(got["model"]) != `"m"` || string(got["tools"]) != string(d.JSON()) || string(got["parallel_tool_calls"]) != "true" {
		t.Errorf("%s", body)
	}
	for _, own := range []any{[]int{1}, nil, make(chan int)} {
		if body, err := d.Body(own); err == nil {
			t.Errorf("%T gave %s", own, body)
		}
	}
	if body, err := a.Declare(nil).Body(map[string]any{"model": "m"}); err != nil || string(body) != `{"model":"m"}` {
		t.Errorf("%s %v", body, err)
	}
}
