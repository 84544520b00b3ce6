package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
)

// maxBody bounds a request's body.
const maxBody = 10 << 20

// api is the handler of one document. It keeps nothing between requests.
type api struct {
	router routers.Router
}

// newAPI reads an OpenAPI 3 document, JSON or YAML.
func newAPI(document []byte) (*api, error) {
	loader := openapi3.NewLoader()
	doc, err := loader.LoadFromData(document)
	if err != nil {
		return nil, err
	}
	router, err := legacy.NewRouter(doc, openapi3.DisableExamplesValidation(), openapi3.DisableSchemaDefaultsValidation())
	if err != nil {
		return nil, err
	}
	return &api{router: router}, nil
}

// ServeHTTP answers 404 for a path that the document does not have, 405 for a method, 422 for a request
// that does not fit, and else the operation's success response. A member of the answer that is named like
// something in the request takes the request's value.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		refuse(w, http.StatusRequestEntityTooLarge, err)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	route, path, err := a.router.FindRoute(r)
	if err != nil {
		refuse(w, routeStatus(err), err)
		return
	}
	input := &openapi3filter.RequestValidationInput{
		Request:    r,
		PathParams: path,
		Route:      route,
		Options:    &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	}
	if err := openapi3filter.ValidateRequest(context.WithoutCancel(r.Context()), input); err != nil {
		refuse(w, http.StatusUnprocessableEntity, err)
		return
	}
	answer(w, route.Operation, sent(r, path, body))
}

func routeStatus(err error) int {
	var route *routers.RouteError
	if errors.As(err, &route) && route.Reason == routers.ErrMethodNotAllowed.Error() {
		return http.StatusMethodNotAllowed
	}
	return http.StatusNotFound
}

func refuse(w http.ResponseWriter, status int, reason error) {
	write(w, status, map[string]string{"message": reason.Error()})
}

func write(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(value); err != nil {
		log.Print(err)
	}
}

// sent collects what the caller gave, by name: path and query parameters as text, members of a JSON body
// as they are.
func sent(r *http.Request, path map[string]string, body []byte) map[string]any {
	values := map[string]any{}
	for name, value := range path {
		values[name] = value
	}
	for name, list := range r.URL.Query() {
		values[name] = list[0]
	}
	var members map[string]any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if decoder.Decode(&members) == nil {
		maps.Copy(values, members)
	}
	return values
}

// answer writes the success response with the lowest status.
func answer(w http.ResponseWriter, op *openapi3.Operation, values map[string]any) {
	w.Header().Set("X-Operation-Id", op.OperationID)
	status, response := success(op)
	if response == nil || len(response.Content) == 0 {
		w.WriteHeader(status)
		return
	}
	if media := response.Content.Get("application/json"); media != nil && media.Schema != nil {
		write(w, status, sample(media.Schema, values))
		return
	}
	for _, name := range slices.Sorted(maps.Keys(response.Content)) {
		w.Header().Set("Content-Type", name)
		break
	}
	w.WriteHeader(status)
	fmt.Fprintln(w, op.OperationID)
}

func success(op *openapi3.Operation) (int, *openapi3.Response) {
	responses := op.Responses.Map()
	for _, code := range slices.Sorted(maps.Keys(responses)) {
		if !strings.HasPrefix(code, "2") || responses[code].Value == nil {
			continue
		}
		status, err := strconv.Atoi(strings.ReplaceAll(code, "X", "0"))
		if err == nil {
			return status, responses[code].Value
		}
	}
	return http.StatusOK, nil
}
