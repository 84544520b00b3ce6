package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/toolcrib/toolcrib/tools"
)

// The paths of a broker's Handler.
const (
	// CallbackPath is where browsers come back to.
	CallbackPath = "/oauth/callback"
	// MetadataPath is the client's metadata document.
	MetadataPath  = "/oauth/client.json"
	authorizePath = "/oauth/authorize/"
)

// cookiePrefix stands before an attempt's state in the name of its cookie, so
// that several windows do not disturb one another.
const cookiePrefix = "toolcrib_oauth_"

// Handler serves the browsers of those who authorize, below /oauth/: the
// beginning of an authorization, the way back, and the client's metadata
// document. Each request must carry, on its context, the identity of whoever the
// browser belongs to.
func (b *Broker) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+authorizePath+"{handle}", b.serveStart)
	mux.HandleFunc("GET "+CallbackPath, b.serveCallback)
	mux.HandleFunc("GET "+MetadataPath, b.serveMetadata)
	return mux
}

// serveStart sends a browser on to the authorization server.
func (b *Broker) serveStart(w http.ResponseWriter, r *http.Request) {
	p := b.find(r.PathValue("handle"))
	if p == nil || !b.mayAuthorize(r.Context(), p.key) {
		show(w, http.StatusNotFound, "Nothing waits for authorization here", "It may have been completed. If a call still needs it, it shows a new link.")
		return
	}
	a, address, err := b.begin(r.Context(), p)
	if err != nil {
		b.showFailure(w, p, err)
		return
	}
	http.SetCookie(w, a.cookie(a.browser, int(attemptLife.Seconds())))
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	http.Redirect(w, r, address, http.StatusFound)
}

// cookie binds an attempt to the browser that began it.
func (a *attempt) cookie(value string, maxAge int) *http.Cookie {
	c := &http.Cookie{Name: cookiePrefix + a.state, Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, SameSite: http.SameSiteLaxMode}
	if u, err := url.Parse(a.redirect); err == nil {
		c.Path, c.Secure = path.Dir(u.Path), u.Scheme == "https"
	}
	return c
}

// serveCallback takes back a browser. Whatever comes of it, the state is used up.
func (b *Broker) serveCallback(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	a := b.take(query.Get("state"))
	if a == nil {
		show(w, http.StatusBadRequest, "This authorization is not known", "It took too long, or was completed before. Please open the link again.")
		return
	}
	cookie, err := r.Cookie(cookiePrefix + a.state)
	if err != nil || !a.isBrowser(cookie.Value) || !b.mayAuthorize(r.Context(), a.pending.key) {
		show(w, http.StatusForbidden, "This authorization began elsewhere", "Please open the link in the browser in which you log in.")
		return
	}
	http.SetCookie(w, a.cookie("", -1))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), flightLimit)
	defer cancel()
	if err := b.finish(ctx, a, responseOf(query)); err != nil {
		a.pending.settle(err, false)
		b.showFailure(w, a.pending, err)
		return
	}
	b.complete(a.pending)
	show(w, http.StatusOK, "Authorized", "Toolcrib may now use "+a.pending.key.Source+". You can close this window.")
}

func (b *Broker) showFailure(w http.ResponseWriter, p *pending, err error) {
	text := err.Error()
	if e, ok := errors.AsType[*tools.Error](err); ok {
		text = e.SafeMessage()
	}
	b.log.Warn("an authorization failed", "source", p.key.Source, "error", text)
	show(w, http.StatusBadGateway, "Not authorized", "For "+p.key.Source+": "+text)
}

// serveMetadata answers with what servers may know of this client that know it
// by the address of this document.
func (b *Broker) serveMetadata(w http.ResponseWriter, r *http.Request) {
	redirect := b.opts.RedirectURL()
	if redirect == "" {
		http.NotFound(w, r)
		return
	}
	self := strings.TrimSuffix(redirect, path.Base(redirect)) + path.Base(MetadataPath)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(struct {
		ClientID string `json:"client_id"`
		*oauthex.ClientRegistrationMetadata
	}{self, &oauthex.ClientRegistrationMetadata{
		ClientName: clientName, RedirectURIs: []string{redirect}, GrantTypes: []string{"authorization_code", "refresh_token"},
		ResponseTypes: []string{"code"}, TokenEndpointAuthMethod: methodNone, ApplicationType: applicationType(redirect),
	}})
}

// page has two places for a title and one for a text, all of them between tags.
const page = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>%[1]s · Toolcrib</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:15vh auto;padding:0 1rem}</style></head>
<body><h1>%[1]s</h1><p>%[2]s</p></body></html>
`

// show writes a page for a person. It loads nothing and stands in no frame.
func show(w http.ResponseWriter, status int, title, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, page, html.EscapeString(title), html.EscapeString(text))
}
