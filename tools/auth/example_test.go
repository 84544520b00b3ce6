package auth_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/toolcrib/toolcrib/tools/auth"
)

// A client of its own name: the first request is refused, and goes out again with
// a token.
func ExampleUpstream_Transport() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, _, _ := r.BasicAuth()
		fmt.Println("token request:", id, r.FormValue("grant_type"), r.FormValue("scope"))
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "t1", "token_type": "Bearer", "expires_in": 3600})
	}))
	defer server.Close()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer t1" {
			http.Error(w, "who is it?", http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, "welcome")
	}))
	defer service.Close()

	broker := auth.NewBroker(nil)
	upstream, err := broker.Upstream(&auth.Config{
		Source:   "reports",
		Resource: service.URL,
		Grant:    auth.ClientCredentials,
		Client:   auth.Client{ID: "crib", Secret: "secret"},
		TokenURL: server.URL,
		Scopes:   []string{"reports.read"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer upstream.Close()
	transport := upstream.Transport(nil)
	defer transport.(io.Closer).Close()

	client := &http.Client{Transport: transport}
	for range 2 {
		resp, err := client.Get(service.URL)
		if err != nil {
			fmt.Println(err)
			return
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		fmt.Println("service:", string(body))
	}
	// Output:
	// token request: crib client_credentials reports.read
	// service: welcome
	// service: welcome
}
