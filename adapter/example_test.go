package adapter_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/toolcrib/toolcrib/adapter"
	"github.com/toolcrib/toolcrib/tools"
)

func Example() {
	a, _ := adapter.New(adapter.Anthropic, nil)
	d := a.Declare([]tools.Tool{{
		Name:        "weather.get_current",
		Description: "Return the current weather of a city.",
		ArgsSchema:  json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
	}})
	fmt.Println(string(d.Request()))

	response := json.RawMessage(`{"role":"assistant","content":[
		{"type":"tool_use","id":"toolu_1","name":"weather__get_current","input":{"city":"Riga"}}]}`)
	calls, _ := d.Calls(response)
	fmt.Println(calls[0].Tool, string(calls[0].Args))

	messages, _ := d.Results(context.Background(), []adapter.Answer{{
		Call: calls[0], Result: tools.ToolResult{Value: map[string]any{"temperature_c": 21}},
	}})
	fmt.Println(string(messages[0]))
	// Output:
	// {"tools":[{"name":"weather__get_current","description":"Return the current weather of a city.","input_schema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}]}
	// weather.get_current {"city":"Riga"}
	// {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"{\"temperature_c\":21}"}]}]}
}

func ExampleAdapter_Declare_strict() {
	a, _ := adapter.New(adapter.OpenAI, &adapter.Options{Strict: true})
	d := a.Declare([]tools.Tool{{
		Name: "tag",
		ArgsSchema: json.RawMessage(`{"type":"object","properties":{
			"id":{"type":"integer"},
			"name":{"type":"string","maxLength":20},
			"labels":{"type":"object","additionalProperties":{"type":"string"}}},"required":["id"]}`),
	}})
	for _, loss := range d.Losses {
		fmt.Println(loss)
	}
	calls, _ := d.Calls(json.RawMessage(`{"role":"assistant","tool_calls":[{"id":"call_1","type":"function","function":{
		"name":"tag","arguments":"{\"id\":7,\"name\":null,\"labels\":[{\"key\":\"env\",\"value\":\"prod\"}]}"}}]}`))
	fmt.Println(string(calls[0].Args))
	// Output:
	// tag #/properties/name/maxLength maxLength: OpenAI's strict mode does not enforce it; the description says it
	// {"id":7,"labels":{"env":"prod"}}
}
