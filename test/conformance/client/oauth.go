package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"strings"
	"text/template"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcrib/toolcrib/gateway"
)

// suiteContext is what the suite tells of a scenario.
type suiteContext struct {
	Scenario  string                `json:"-"`
	ToolCalls []*mcp.CallToolParams `json:"toolCalls"`

	ClientID         string `json:"client_id"`
	ClientSecret     string `json:"client_secret"`
	Issuer           string `json:"issuer"`
	PrivateKey       string `json:"private_key_pem"`
	SigningAlgorithm string `json:"signing_algorithm"`
	WorkloadJWT      string `json:"valid_jwt"`
	IDPClientID      string `json:"idp_client_id"`
	IDPToken         string `json:"idp_id_token"`
	IDPTokenEndpoint string `json:"idp_token_endpoint"`
}

func readContext() (*suiteContext, error) {
	told := &suiteContext{Scenario: os.Getenv("MCP_CONFORMANCE_SCENARIO")}
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), told); err != nil {
			return nil, err
		}
	}
	if told.Issuer == "" {
		told.Issuer = "any" // the suite does not say
	}
	return told, nil
}

// Grant is how the gateway gets its tokens in the scenario.
func (c *suiteContext) Grant() string {
	switch {
	case c.IDPToken != "":
		return "identity_assertion"
	case c.WorkloadJWT != "":
		return "jwt_bearer"
	case strings.Contains(c.Scenario, "client-credentials"):
		return "client_credentials"
	}
	return "authorization_code"
}

// config is a gateway before the suite's server. The secrets are in the environment.
var config = template.Must(template.New("config").Parse(`
tools:
  mcp_servers:
    - name: suite
      url: {{.URL}}
      prefix: none
      session: per_session
      policy: {max_attempts: 1, validate: none} # the suite sends arguments that its own schemas refuse
      {{if .OAuth}}oauth: {provider: suite}{{end}}
{{if .OAuth}}
  oauth_providers:
    - name: suite
      grant: {{.Grant}}
      client_metadata_url: https://conformance-test.local/client-metadata.json
      {{if .ClientID}}client_id_env: SUITE_CLIENT_ID
      issuer: {{.Issuer}}{{end}}
      {{if .ClientSecret}}client_secret_env: SUITE_CLIENT_SECRET{{end}}
      {{if .PrivateKey}}private_key: ${SUITE_PRIVATE_KEY}
      signing_algorithm: {{.SigningAlgorithm}}{{end}}
      {{if .WorkloadJWT}}assertion: ${SUITE_ASSERTION}{{end}}
      {{if .IDPToken}}identity_provider:
        token_url: {{.IDPTokenEndpoint}}
        client_id_env: SUITE_IDP_CLIENT_ID
        identity_token: ${SUITE_ID_TOKEN}{{end}}
{{end}}`))

func (c *suiteContext) config(url string) ([]byte, error) {
	for name, value := range map[string]string{
		"SUITE_CLIENT_ID": c.ClientID, "SUITE_CLIENT_SECRET": c.ClientSecret, "SUITE_PRIVATE_KEY": c.PrivateKey,
		"SUITE_ASSERTION": c.WorkloadJWT, "SUITE_IDP_CLIENT_ID": c.IDPClientID, "SUITE_ID_TOKEN": c.IDPToken,
	} {
		if err := os.Setenv(name, value); err != nil {
			return nil, err
		}
	}
	var out bytes.Buffer
	err := config.Execute(&out, struct {
		*suiteContext
		URL   string
		OAuth bool
	}{c, url, strings.HasPrefix(c.Scenario, "auth/")})
	return out.Bytes(), err
}

// serve lets browsers reach the gateway, and returns what ends that.
func serve(g *gateway.Gateway) (stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g.ServedAt("http://" + listener.Addr().String())
	server := &http.Server{Handler: g.Handler(), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	return func() { _ = server.Close() }, nil
}

// authorize is the operator, who opens the page that the source waits for, until it is ready.
func authorize(ctx context.Context, g *gateway.Gateway) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for opened := ""; ; {
		source := g.Sources()[0]
		switch url := source.AuthorizationURL; {
		case source.State == gateway.SourceReady:
			return nil
		case url != "" && url != opened:
			opened = url
			if err := browse(ctx, url); err != nil {
				return err
			}
		case url == "" && opened == "" && source.State == gateway.SourceDown:
			return fmt.Errorf("the source is down: %s", source.Error)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the source is %s: %s", source.State, source.Error)
		}
	}
}

// browse is a person's browser: it follows the page to the authorization server, which agrees at once, and back.
func browse(ctx context.Context, url string) error {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := (&http.Client{Jar: jar, Timeout: 10 * time.Second}).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	page, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", url, resp.Status, page)
	}
	return nil
}
