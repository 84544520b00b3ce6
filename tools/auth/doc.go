// Package auth obtains tokens for the services behind tools and sends them with
// requests: OAuth 2.1 as MCP uses it, on the client's side.
//
// A [Broker] serves one gateway. It keeps the tokens, in a [Store], and the
// authorizations that wait for a person; its Handler is where the person's
// browser begins one and comes back to. [Broker.Upstream] describes one
// protected service, and [Upstream.Transport] is the http.RoundTripper by which
// a driver reaches it. The round tripper adds the token of whoever the request
// is made for. When the service answers 401, or 403 because the scope does not
// suffice, it finds the authorization server, obtains what is missing, and sends
// the request again; where a person has to agree, it fails with a
// [*RequiredError], which says where.
//
// Whose token a request goes out with follows from the [Binding] and from the
// identity on the request's context. A token goes to the origin of its service
// and nowhere else. It stands in no error, log line or event.
//
// Discovery follows RFC 9728 and RFC 8414, OpenID Connect Discovery, and the
// fallbacks of MCP's revision 2025-03-26; registration is by configuration, by
// a client ID metadata document, or dynamic (RFC 7591). Grants are the
// authorization code with PKCE, client credentials, a signed assertion
// (RFC 7523), and the exchange of an identity for one (RFC 8693); a client
// authenticates by secret, in the header or in the body, by a signed assertion,
// or not at all. Where a service wants that, a token is bound to a key (RFC 9449).
// Resource indicators (RFC 8707) and the issuer of an
// authorization response (RFC 9207) are always sent and checked.
package auth
