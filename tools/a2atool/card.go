package a2atool

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"

	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// The places of a card below a URL that does not name one: of today, and of
// agents that are older.
const (
	wellKnown      = ".well-known/agent-card.json"
	wellKnownOlder = ".well-known/agent.json"
)

// maxCardBytes bounds a card.
const maxCardBytes = 4 << 20

// An agent is what one version of a card describes, and the way to it.
type agent struct {
	card   *a2a.AgentCard
	raw    json.RawMessage // the card as published, signatures included
	digest [sha256.Size]byte
	faults map[int]error // of skills that cannot be read, by their place
	via    *a2a.AgentInterface
	client *a2aclient.Client

	mu      sync.Mutex
	calls   int
	retired bool
}

// use counts a call that uses the agent, until release.
func (a *agent) use() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls++
}

func (a *agent) release() {
	a.mu.Lock()
	a.calls--
	last := a.retired && a.calls == 0
	a.mu.Unlock()
	if last {
		_ = a.client.Destroy()
	}
}

// retire closes the client when the calls that use it have ended.
func (a *agent) retire() {
	a.use()
	a.mu.Lock()
	a.retired = true
	a.mu.Unlock()
	a.release()
}

// readAgent reads the card and makes ready to call the agent.
func (p *Peer) readAgent(ctx context.Context) (*agent, error) {
	raw, err := p.fetchCard(ctx)
	if err != nil {
		return nil, err
	}
	card, faults, err := parseCard(raw)
	if err != nil {
		return nil, p.answerFailure("", fmt.Errorf("its card cannot be used: %w", err))
	}
	a := &agent{card: card, raw: raw, digest: sha256.Sum256(raw), faults: faults}
	if err := p.dial(ctx, a); err != nil {
		return nil, p.answerFailure("", fmt.Errorf("its card cannot be used: %w", err))
	}
	return a, nil
}

// fetchCard reads the card from where the URL says, and where that names no
// card and none is found, from the place of older agents.
func (p *Peer) fetchCard(ctx context.Context) (json.RawMessage, error) {
	if strings.HasSuffix(p.url.Path, ".json") {
		return p.fetch(ctx, p.url)
	}
	raw, err := p.fetch(ctx, p.url.JoinPath(wellKnown))
	var te *tools.Error
	if errors.As(err, &te) && errors.Is(te.Err, errNotFound) {
		if older, otherErr := p.fetch(ctx, p.url.JoinPath(wellKnownOlder)); otherErr == nil {
			return older, nil
		}
	}
	return raw, err
}

// errNotFound says that there is no card at a place.
var errNotFound = errors.New("not found")

func (p *Peer) fetch(ctx context.Context, u *url.URL) (json.RawMessage, error) {
	const doing = "reading its card"
	ctx, t := withTrip(ctx)
	req := (&http.Request{Method: http.MethodGet, URL: u, Host: u.Host, Header: http.Header{"Accept": {"application/json"}}}).WithContext(ctx)
	resp, err := p.net.cardClient().Do(req)
	if err != nil {
		return nil, p.failure(ctx, "", doing, err, t.known())
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		failed := p.failure(ctx, "", doing, errNotFound, t.known())
		if resp.StatusCode == http.StatusNotFound {
			failed.Err = errNotFound
		}
		return nil, failed
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxCardBytes+1))
	switch {
	case err != nil:
		return nil, p.failure(ctx, "", doing, err, t.known())
	case len(body) > maxCardBytes:
		return nil, p.answerFailure("", fmt.Errorf("its card is longer than %d bytes", maxCardBytes))
	}
	return body, nil
}

// parseCard reads a card of any version. A skill that cannot be read is an
// empty one, and its fault is given under its place.
func parseCard(raw []byte) (*a2a.AgentCard, map[int]error, error) {
	if err := rawjson.Check(raw, rawjson.Options{}); err != nil {
		return nil, nil, fmt.Errorf("it is not JSON: %w", err)
	}
	card, err := a2av0.NewAgentCardParser()(raw)
	var faults map[int]error
	if err != nil {
		var readable []byte
		if readable, faults = blankSkills(raw); len(faults) > 0 {
			card, err = a2av0.NewAgentCardParser()(readable)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	if card.Name == "" {
		return nil, nil, errors.New("it gives no name: expected an agent card")
	}
	completeInterfaces(card, raw)
	return card, faults, nil
}

// blankSkills replaces the skills that cannot be read by empty ones, and says
// what is wrong with each.
func blankSkills(raw []byte) ([]byte, map[int]error) {
	list, ok := rawjson.Get(raw, "skills")
	if !ok {
		return nil, nil
	}
	parse, faults, skills := a2av0.NewAgentCardParser(), map[int]error{}, []byte{'['}
	it := rawjson.Array(list)
	for i := 0; it.Next(); i++ {
		one := it.Value()
		if _, err := parse(slices.Concat([]byte(`{"skills":[`), one, []byte(`]}`))); err != nil {
			faults[i], one = fmt.Errorf("skill %d of the card cannot be read: %w", i+1, err), []byte("{}")
		}
		if i > 0 {
			skills = append(skills, ',')
		}
		skills = append(skills, one...)
	}
	readable, err := rawjson.Set(raw, "skills", append(skills, ']'))
	if err != nil {
		return nil, nil
	}
	return readable, faults
}

// completeInterfaces fills in what older cards may leave out: the binding of
// the URL of version 0.3, and the version of an interface.
func completeInterfaces(card *a2a.AgentCard, raw []byte) {
	if len(card.SupportedInterfaces) == 0 {
		if v, ok := rawjson.Get(raw, "url"); ok {
			u, _ := rawjson.Unquote(v)
			card.SupportedInterfaces = append(card.SupportedInterfaces,
				&a2a.AgentInterface{URL: u, ProtocolBinding: a2a.TransportProtocolJSONRPC, ProtocolVersion: a2av0.Version})
		}
	}
	for _, i := range card.SupportedInterfaces {
		if i != nil && i.ProtocolVersion == "" {
			i.ProtocolVersion = a2a.Version
		}
	}
}

// dial makes a client for the best interface that the card offers and the
// configuration allows: the newest version first, then in the card's order.
// Nothing is sent yet.
func (p *Peer) dial(ctx context.Context, a *agent) error {
	usable, failures := p.usable(a.card)
	for _, i := range usable {
		own := *a.card
		own.SupportedInterfaces = []*a2a.AgentInterface{i}
		client, err := p.factory.CreateFromCard(ctx, &own)
		if err == nil {
			a.client, a.via = client, i
			return nil
		}
		failures = append(failures, err)
	}
	return errors.Join(append([]error{errors.New("it offers no interface that can be used")}, failures...)...)
}

// usable divides a card's interfaces, and sorts those that can be used.
func (p *Peer) usable(card *a2a.AgentCard) (usable []*a2a.AgentInterface, refused []error) {
	for _, i := range card.SupportedInterfaces {
		if i == nil {
			continue
		}
		if err := p.admitsInterface(i); err != nil {
			refused = append(refused, fmt.Errorf("%s %s: %w", bound(string(i.ProtocolBinding), 40), bound(string(i.ProtocolVersion), 20), err))
			continue
		}
		usable = append(usable, i)
	}
	slices.SortStableFunc(usable, func(a, b *a2a.AgentInterface) int { return cmp.Compare(major(b), major(a)) })
	return usable, refused
}

// major is the first digit of an interface's version.
func major(i *a2a.AgentInterface) string {
	first, _, _ := strings.Cut(string(i.ProtocolVersion), ".")
	return first
}

func (p *Peer) admitsInterface(i *a2a.AgentInterface) error {
	switch i.ProtocolBinding {
	case a2a.TransportProtocolGRPC:
		_, err := p.cfg.grpcURL(i.URL)
		return err
	case a2a.TransportProtocolJSONRPC, a2a.TransportProtocolHTTPJSON:
	default:
		return errors.New("the binding is not known: expected JSONRPC, HTTP+JSON or GRPC")
	}
	u, err := url.Parse(i.URL)
	if err != nil || u.Hostname() == "" || u.User != nil {
		return errBadPlace
	}
	return p.cfg.admits(u)
}

var errBadPlace = errors.New("its URL is no absolute https URL without a user name")

// newFactory returns the maker of clients: version 1.0 and 0.3, each by
// JSON-RPC, REST and gRPC.
func newFactory(n *network) *a2aclient.Factory {
	c := n.client()
	return a2aclient.NewFactory(
		a2aclient.WithDefaultsDisabled(),
		a2aclient.WithConfig(a2aclient.Config{DisableTenantPropagation: true}),
		a2aclient.WithJSONRPCTransport(c),
		a2aclient.WithRESTTransport(c),
		a2av0.WithJSONRPCTransport(a2av0.JSONRPCTransportConfig{Client: c}),
		a2av0.WithRESTTransport(a2av0.RESTTransportConfig{Client: c}),
		a2aclient.WithTransport(a2a.TransportProtocolGRPC, n.grpcV1()),
		a2aclient.WithCompatTransport(a2av0.Version, a2a.TransportProtocolGRPC, n.grpcV0()),
	)
}
