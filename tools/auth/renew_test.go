package auth

import (
	"errors"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/internal/oauthtest"
	"github.com/toolcrib/toolcrib/tools"
)

const callers = 50

// together lets many callers go at one moment and fails the test unless the
// service takes all of them.
func together(t *testing.T, c *http.Client, w *oauthtest.World, who identity.Identity) {
	t.Helper()
	start := make(chan struct{})
	var work sync.WaitGroup
	for range callers {
		work.Go(func() {
			<-start
			if status, body, err := post(t, c, w.Service.URL+"/mcp", who); err != nil || status != 200 || body != "welcome" {
				t.Errorf("the service answered %d %q, %v", status, body, err)
			}
		})
	}
	close(start)
	work.Wait()
}

// expired makes the token of a key end now, for whoever looks at the clock.
func expired(t *testing.T, g *gate, u *Upstream) {
	t.Helper()
	key, err := u.keyFor(identity.With(t.Context(), ada))
	if err != nil {
		t.Fatal(err)
	}
	token, _ := g.opts.Store.Load(t.Context(), key)
	old := *token
	old.Expiry = time.Now()
	if err := g.opts.Store.Save(t.Context(), key, &old); err != nil {
		t.Fatal(err)
	}
}

// A refresh token is good once: a second request with it would be refused.
func TestManyCallersRefreshOnce(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, g *gate, w *oauthtest.World, u *Upstream){
		"by the clock":   func(t *testing.T, g *gate, _ *oauthtest.World, u *Upstream) { expired(t, g, u) },
		"by the service": func(_ *testing.T, _ *gate, w *oauthtest.World, _ *Upstream) { w.Expire() },
		"by both":        func(t *testing.T, g *gate, w *oauthtest.World, u *Upstream) { expired(t, g, u); w.Expire() },
	} {
		t.Run(name, func(t *testing.T) {
			w, g := oauthtest.New(t), newGate(t)
			w.Lifetime = 3600
			c, u := g.client(t, w, Config{Binding: PerUser})
			link, _ := needsPerson(t, c, w, ada)
			agree(t, link)
			welcome(t, c, w, ada)
			end(t, g, w, u)
			together(t, c, w, ada)
			if n := w.Count("refresh_token"); n != 1 {
				t.Errorf("%d refreshes", n)
			}
			if len(w.Asked) != 1 {
				t.Errorf("the person was asked %d times", len(w.Asked))
			}
		})
	}
}

func TestManyCallersObtainOneToken(t *testing.T) {
	w, g := oauthtest.New(t), newGate(t)
	w.Lifetime = 3600
	c, u := g.client(t, w, machine(w))
	together(t, c, w, bob)
	if n := w.Count("client_credentials"); n != 1 {
		t.Errorf("%d token requests", n)
	}
	expired(t, g, u)
	together(t, c, w, bob)
	if n := w.Count("client_credentials"); n != 2 {
		t.Errorf("%d token requests", n)
	}
}

// Callers that give up do not end the request that others wait for.
func TestWhoGivesUpLeavesTheRefreshToOthers(t *testing.T) {
	w, g := oauthtest.New(t), newGate(t)
	c, u := g.client(t, w, Config{Binding: PerUser})
	link, _ := needsPerson(t, c, w, ada)
	agree(t, link)
	expired(t, g, u)
	reached, goOn := make(chan struct{}), make(chan struct{})
	w.Refreshing = func(http.ResponseWriter) bool {
		close(reached)
		<-goOn
		return false
	}
	impatient := make(chan error, 1)
	ctx, cancel := contextOf(t, ada)
	go func() {
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, w.Service.URL+"/mcp", nil)
		resp, err := c.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		impatient <- err
	}()
	<-reached
	cancel()
	if err := <-impatient; err == nil {
		t.Error("the request that was given up succeeded")
	}
	close(goOn)
	welcome(t, c, w, ada)
	if n := w.Count("refresh_token"); n != 1 {
		t.Errorf("%d refreshes", n)
	}
}

func TestRefreshThatFails(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		answer any
		class  tools.ErrorClass // empty: a person is needed
	}{
		"the token no longer holds":  {400, map[string]string{"error": "invalid_grant"}, ""},
		"the client is not known":    {401, map[string]string{"error": "invalid_client"}, ""},
		"the server is overloaded":   {503, "try later", tools.ErrClass5xx},
		"the server wants it slower": {429, "slower", tools.ErrClassTransient},
	} {
		t.Run(name, func(t *testing.T) {
			w, g := oauthtest.New(t), newGate(t)
			w.Demand("read")
			c, u := g.client(t, w, Config{Binding: PerUser})
			link, _ := needsPerson(t, c, w, ada)
			agree(t, link)
			expired(t, g, u)
			w.Expire()
			w.Demand()
			w.Refreshing = func(out http.ResponseWriter) bool { oauthtest.WriteJSON(out, tc.status, tc.answer); return true }
			if tc.class == "" {
				needsPerson(t, c, w, ada)
				link, _ := needsPerson(t, c, w, ada)
				agree(t, link)
				if got := w.Asked[1].Get("scope"); got != "read" {
					t.Errorf("asked for %q, want what was had before", got)
				}
				return
			}
			_, _, err := post(t, c, w.Service.URL+"/mcp", ada)
			var te *tools.Error
			if !errors.As(err, &te) || te.Class != tc.class || te.Delivery != tools.NotDelivered {
				t.Fatalf("the request gave %v", err)
			}
			w.Refreshing = nil
			welcome(t, c, w, ada) // the refresh token was kept
		})
	}
}

func TestStepUp(t *testing.T) {
	w, g := oauthtest.New(t), newGate(t)
	w.Demands = []string{"read"}
	c, _ := g.client(t, w, Config{Binding: PerUser})
	link, _ := needsPerson(t, c, w, ada)
	agree(t, link)
	welcome(t, c, w, ada)
	w.Demand("write")
	link, _ = needsPerson(t, c, w, ada)
	agree(t, link)
	welcome(t, c, w, ada)
	if got := w.Asked[1].Get("scope"); got != "read write" {
		t.Errorf("asked for %q, want what was had before too", got)
	}
}

// A service that refuses a token although it has what was demanded is not asked
// for ever.
func TestStepUpEnds(t *testing.T) {
	w, g := oauthtest.New(t), newGate(t)
	w.Demands = []string{"read"}
	c, _ := g.client(t, w, machine(w))
	w.Answers = func(_ url.Values, out http.ResponseWriter) bool {
		w.Issue("poor")
		oauthtest.WriteJSON(out, 200, map[string]string{"access_token": "poor"})
		return true
	}
	for range 3 {
		if status, _, err := post(t, c, w.Service.URL+"/mcp", ada); err != nil || status != 403 {
			t.Fatalf("%d, %v", status, err)
		}
	}
	if n := w.Count("client_credentials"); n != 1 {
		t.Errorf("%d token requests", n)
	}
}
