package httptool_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/httptool"
)

// A server that tells what it was sent does not tell it to the caller.
func TestEchoedSecrets(t *testing.T) {
	const quoted = `qu"o<te\d`
	srv, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		user, password, _ := r.BasicAuth()
		_ = json.NewEncoder(w).Encode(map[string]any{"bad": strings.TrimPrefix(r.Header.Get("X-Auth"), "Bearer "), "key": r.Header.Get("X-Key"),
			"header": r.Header, "user": user, "pass": password, "url": fmt.Sprintf("%q", r.Header.Get("X-Key"))})
	})
	e := raw(t, single(t, srv.URL, func(cfg *httptool.OpenAPIConfig) {
		cfg.Headers = map[string]string{"X-Auth": "Bearer CANARYTOK12345", "X-Key": quoted}
		cfg.Auth = &httptool.Auth{Kind: httptool.AuthBasic, Secret: httptool.FixedSecret("user:PASSCANARY")}
	}))
	mustContain(t, e.Message, `"bad":"[hidden]"`, `"key":"[hidden]"`, `"pass":"[hidden]"`, `"Authorization":["Basic [hidden]"]`)
	for _, secret := range []string{"CANARY", "o<te", `o\u003cte`} {
		if strings.Contains(e.Message, secret) {
			t.Errorf("%s is shown: %s", secret, e.Message)
		}
	}
}

func TestHeaderParameterThatIsNone(t *testing.T) {
	for version, head := range map[string]string{"3.1.0": `{"openapi":"3.1.0",`, "2.0": `{"swagger":"2.0",`} {
		operation := func(id, name string) string {
			return fmt.Sprintf(`"/%s":{"get":{"operationId":%q,"responses":{},"parameters":[{"name":%s,"in":"header","type":"string","schema":{"type":"string"}}]}}`, id, id, name)
		}
		src := openAPI(t, httptool.OpenAPIConfig{ServerURL: "http://127.0.0.1", Content: []byte(head + `"info":{"title":"t","version":"1"},"paths":{` +
			operation("good", `"X-Fine"`) + "," + operation("crlf", `"X\r\nEvil"`) + "," + operation("space", `"X Y"`) + "}}")})
		list, err := src.Discover(t.Context())
		if err != nil || len(list) != 1 || list[0].Tool.Name != "api_good" {
			t.Fatalf("%s: %d tools, %v", version, len(list), err)
		}
		refused := src.Refused()
		if len(refused) != 2 {
			t.Fatalf("%s: refused %v", version, refused)
		}
		for _, r := range refused {
			mustContain(t, r.Err.Error(), "is not a header name")
		}
	}
}

func TestLinkLocalIsNotCalledInAPrivateNetwork(t *testing.T) {
	for _, target := range []string{"http://169.254.169.254/latest/meta-data/", "http://[fe80::1]/", "http://[::ffff:169.254.169.254]/"} {
		srv, _ := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, target, http.StatusFound) })
		e := raw(t, single(t, srv.URL, nil))
		if e.Class != tools.ErrClassPermanent {
			t.Errorf("%s: %+v", target, e)
		}
		mustContain(t, e.Message, "redirected", "link-local")

		found := openAPI(t, httptool.OpenAPIConfig{Content: document("3.1.0", `"servers":[{"url":"`+target+`"}],"paths":{"/x":{"get":{"operationId":"get"}}}`)})
		if list, err := found.Discover(t.Context()); err != nil || len(list) != 0 || len(found.Refused()) != 1 {
			t.Errorf("a document's server %s: %d tools, %v", target, len(list), err)
		} else {
			mustContain(t, found.Refused()[0].Err.Error(), "link-local")
		}

		named := openAPI(t, httptool.OpenAPIConfig{ServerURL: target, Content: document("3.1.0", `"paths":{"/x":{"get":{"operationId":"get"}}}`)})
		if list, err := named.Discover(t.Context()); err != nil || len(list) != 1 {
			t.Errorf("the configured server %s: %d tools, %v", target, len(list), err)
		}
	}
}
