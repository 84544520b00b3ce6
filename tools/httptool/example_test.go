package httptool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/httptool"
)

// The operations of an OpenAPI document become tools of a catalog.
func ExampleNewOpenAPI() {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"asked": %q, "key": %q}`, r.URL, r.Header.Get("X-Key"))
	}))
	defer api.Close()

	source, err := httptool.NewOpenAPI(httptool.OpenAPIConfig{
		Name: "weather",
		Content: []byte(`
openapi: 3.1.0
info: {title: Weather, version: "1"}
paths:
  /cities/{city}/forecast:
    get:
      operationId: getForecast
      summary: Forecasts the weather of a city.
      parameters:
        - {name: city, in: path, required: true, schema: {type: string}}
        - {name: days, in: query, schema: {type: integer, minimum: 1}}
`),
		ServerURL: api.URL,
		Auth:      &httptool.Auth{Kind: httptool.AuthAPIKey, Header: "X-Key", Secret: httptool.FixedSecret("k1")},
		Network:   httptool.Network{AllowPrivate: true},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	defer source.Close(ctx)

	catalog := tools.NewCatalog().(tools.LiveCatalog)
	list, err := source.Discover(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(catalog.SwapSource(source.SourceID(), list).Added)

	result, err := tools.Invoke(ctx, catalog, "weather_getForecast", json.RawMessage(`{"city": "Rio/Centro", "days": 3}`))
	fmt.Println(string(result.Structured), err)
	_, err = tools.Invoke(ctx, catalog, "weather_getForecast", json.RawMessage(`{"city": "Rio", "days": 0}`))
	fmt.Println(errors.Is(err, tools.ErrToolInvalidArgs))

	// Output:
	// [weather_getForecast]
	// {"asked": "/cities/Rio%2FCentro/forecast?days=3", "key": "k1"} <nil>
	// true
}

// A manifest describes single endpoints with templates.
func ExampleNewManifest() {
	api := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Println(r.Method, r.URL, string(body))
	}))
	defer api.Close()

	source, err := httptool.NewManifest(httptool.ManifestConfig{
		File: "tickets.yaml",
		Content: []byte(`
tools:
  - name: tickets.comment
    method: POST
    url_template: ` + api.URL + `/tickets/{{.Args.ticket}}/comments
    body_template: '{"text": "{{.Args.text}}", "labels": {{.Args.labels}}}'
    args_schema:
      type: object
      properties:
        ticket: {type: string}
        text: {type: string}
        labels: {type: array}
      required: [ticket, text]
`),
		Network: httptool.Network{AllowPrivate: true},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	defer source.Close(ctx)
	list, _ := source.Discover(ctx)

	catalog := tools.NewCatalog().(tools.LiveCatalog)
	catalog.SwapSource(source.SourceID(), list)
	result, err := tools.Invoke(ctx, catalog, "tickets.comment", json.RawMessage(`{"ticket": "A/7", "text": "say \"hi\"", "labels": ["x"]}`))
	fmt.Println(string(result.Structured), err)

	// Output:
	// POST /tickets/A%2F7/comments {"text": "say \"hi\"", "labels": ["x"]}
	// {"status":200} <nil>
}

// The tools of a UTCP manual become tools of a catalog.
func ExampleNewUTCP() {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"asked": %q}`, r.URL)
	}))
	defer api.Close()

	source, err := httptool.NewUTCP(httptool.UTCPConfig{
		Name: "maps",
		Content: []byte(`{"utcp_version": "1.0.1", "tools": [{
			"name": "route",
			"description": "Finds a way.",
			"inputs": {"type": "object", "properties": {"from": {"type": "string"}, "to": {"type": "string"}}, "required": ["from", "to"]},
			"tool_call_template": {"call_template_type": "http", "url": "` + api.URL + `/from/{from}"}
		}, {
			"name": "shell",
			"tool_call_template": {"call_template_type": "cli"}
		}]}`),
		Network: httptool.Network{AllowPrivate: true},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	defer source.Close(ctx)

	catalog := tools.NewCatalog().(tools.LiveCatalog)
	list, err := source.Discover(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(catalog.SwapSource(source.SourceID(), list).Added)
	for _, r := range source.Refused() {
		fmt.Println(r.Name, "is refused")
	}

	result, err := tools.Invoke(ctx, catalog, "maps_route", json.RawMessage(`{"from": "A/B", "to": "C"}`))
	fmt.Println(string(result.Structured), err)

	// Output:
	// [maps_route]
	// shell is refused
	// {"asked": "/from/A%2FB?to=C"} <nil>
}
