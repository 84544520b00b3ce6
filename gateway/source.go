package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/auth"
)

// sourceSpec says how to make one source of tools.
type sourceSpec struct {
	name, kind string
	// settings is everything that the source is made from. A source whose
	// settings stay the same is left alone by a reload.
	settings any
	open     func(log *slog.Logger) (tools.ToolProvider, error)
	// loading is set on tools whose own loading nobody set.
	loading tools.LoadingMode
	// health, when not nil, says what is wrong with a provider that had been
	// connected, or nothing.
	health func(tools.ToolProvider) string
	// unmatched, when not nil, says which keys of the settings name tools that
	// a provider does not have, each with its key.
	unmatched func(tools.ToolProvider, []tools.ToolDescriptor) []string
	// check, when not nil, reads the local document that the configuration
	// names at the place document, and returns what is wrong in it.
	check func(context.Context) error
	// local, when not nil, reads the document on this machine that alone says
	// which tools the source has.
	local func(context.Context) (survey, error)
	// at is the place of the source in the configuration, and document that
	// of its document.
	at, document string
	// prefixes are what the names of the tools can begin with; none means
	// anything.
	prefixes []string
	exact    bool // they are whole names
	// settled, when not nil, reports whether an attempt counts as the first. One
	// that does not is made again once another source had an attempt.
	settled func() bool
	// upstream, when not nil, obtains the tokens that the source wants.
	upstream *auth.Upstream
}

// key tells the sources of one configuration apart.
func (s *sourceSpec) key() string { return s.kind + ":" + s.name }

func (s *sourceSpec) same(other *sourceSpec) bool {
	return s.kind == other.kind && s.loading == other.loading && reflect.DeepEqual(s.settings, other.settings)
}

// The pace at which a source is tried and asked.
const (
	firstRetry    = 500 * time.Millisecond
	longestRetry  = 30 * time.Second
	changeQuiet   = 100 * time.Millisecond // changes within it are one
	composedQuiet = 5 * time.Millisecond   // of what follows changes of this process itself
	closeProvider = 10 * time.Second
)

// source keeps one provider connected and its tools in the catalog. It is
// supervised by a goroutine of its own, so that none waits for another.
type source struct {
	spec    sourceSpec
	cat     tools.LiveCatalog
	log     *slog.Logger
	timeout time.Duration // of one attempt
	swapped func()        // called after each attempt
	retire  func(*source) // called with what the source took over from

	calls   *gate
	changed chan struct{} // holds one
	first   chan struct{} // closed after the first attempt
	stop    context.CancelFunc
	done    chan struct{}

	mu       sync.Mutex // guards what follows
	state    SourceState
	provider tools.ToolProvider
	served   bool // an attempt succeeded
	// before is the halted source whose tools serve until an attempt
	// succeeds, or nil.
	before *source
}

// begin supervises the source until halt.
func (s *source) begin() {
	ctx, stop := context.WithCancel(context.Background())
	s.stop, s.calls = stop, newGate()
	s.changed, s.first, s.done = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	s.log = s.log.With("source", s.spec.name, "kind", s.spec.kind)
	s.state = SourceState{Name: s.spec.name, Kind: s.spec.kind, State: SourceConnecting}
	go s.supervise(ctx)
}

// supervise attempts, and attempts again after a failure or a change.
func (s *source) supervise(ctx context.Context) {
	defer close(s.done)
	failures := 0
	for {
		err := s.attempt(ctx)
		if ctx.Err() != nil {
			return
		}
		if failures++; err == nil {
			failures = 0
		}
		s.note(err)
		if !s.pause(ctx, failures) {
			return
		}
	}
}

// pause waits for a reason to attempt again, and reports false when there will
// be none.
func (s *source) pause(ctx context.Context, failures int) bool {
	var retry <-chan time.Time
	if failures > 0 {
		timer := time.NewTimer(retryAfter(failures))
		defer timer.Stop()
		retry = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-retry:
		return true
	case <-s.changed:
	}
	quiet := time.NewTimer(s.spec.quiet())
	defer quiet.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-quiet.C:
	}
	select {
	case <-s.changed:
	default:
	}
	return true
}

// quiet is how long after a change further ones are waited for.
func (s *sourceSpec) quiet() time.Duration {
	if s.settled != nil || s.kind == kindWorkers {
		return composedQuiet
	}
	return changeQuiet
}

// retryAfter doubles from the first pause to the longest, and spreads by a
// quarter, so that many gateways do not come back at one moment.
func retryAfter(failures int) time.Duration {
	pause := min(firstRetry<<min(failures-1, 10), longestRetry)
	return pause - time.Duration(rand.Int64N(int64(pause)/4+1))
}

// attempt connects if that was not done yet, and brings the catalog up to what
// the source has.
func (s *source) attempt(ctx context.Context) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the driver panicked: %v", r)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	provider, err := s.connected(ctx)
	if err != nil {
		return err
	}
	list, err := provider.Discover(ctx)
	if err != nil {
		return fmt.Errorf("list its tools: %w", err)
	}
	for i := range list {
		list[i].Invoke = s.counted(list[i].Tool.Name, list[i].Invoke)
		list[i].Tool.Loading = cmp.Or(list[i].Tool.Loading, s.spec.loading)
	}
	changes := s.cat.SwapSource(provider.SourceID(), list)
	if r, ok := provider.(tools.Refuser); ok {
		changes.Refused = append(r.Refused(), changes.Refused...)
	}
	var unmatched []string
	if s.spec.unmatched != nil {
		unmatched = s.spec.unmatched(provider, list)
	}
	s.succeeded(changes, unmatched)
	return nil
}

func (s *source) connected(ctx context.Context) (tools.ToolProvider, error) {
	if p := s.current(); p != nil {
		return p, nil
	}
	p, err := s.spec.open(s.log)
	if err != nil {
		return nil, err
	}
	if n, ok := p.(tools.ChangeNotifier); ok {
		n.OnChange(s.poke)
	}
	if err := p.Connect(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("connect: %w", err), closeBounded(p))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.provider = p
	return p, nil
}

func closeBounded(p tools.ToolProvider) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeProvider)
	defer cancel()
	return p.Close(ctx)
}

func (s *source) current() tools.ToolProvider {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.provider
}

// poke says that the source's tools changed. It never waits.
func (s *source) poke() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// counted lets close wait for the calls that the source still runs.
func (s *source) counted(name string, invoke tools.Invoker) tools.Invoker {
	return func(ctx context.Context, args json.RawMessage) (tools.ToolResult, error) {
		if !s.calls.enter() {
			return tools.ToolResult{}, s.left(name)
		}
		defer s.calls.leave()
		return invoke(ctx, args)
	}
}

// left is the failure of a call that waited, for its next attempt, while its
// source was closed. Another attempt would meet the same closed source; a new
// call finds the tool of the source that took over, if there is one.
func (s *source) left(name string) error {
	e := &tools.Error{Class: tools.ErrClassPermanent, Delivery: tools.NotDelivered}
	if _, found := s.cat.Resolve(name); !found {
		e.Code, e.Message = tools.ErrToolNotFound, "the source of the tool was removed"
		return e
	}
	e.Retryable, e.Message = true, "the source of the tool was replaced while the call waited; call the tool again"
	return e
}

// cleaning returns what takes the secrets of a source out of a text: what it
// was given may stand in the tools that it lists.
func cleaning(p tools.ToolProvider) func(string) string {
	if c, ok := p.(interface{ Clean(text string) string }); ok {
		return c.Clean
	}
	return func(text string) string { return text }
}

// apart says which key keeps a name apart from the same one that was there before.
func (s *source) apart() string {
	if s.spec.kind == kindWorkers {
		return ", which another toolset or source has; a prefix in workers.toolsets keeps them apart"
	}
	return ", which another source has; a prefix or another name keeps them apart"
}

func (s *source) succeeded(ch tools.Changes, unmatched []string) {
	refused := make([]Refused, 0, len(ch.Refused))
	clean := cleaning(s.current())
	known := s.status().Refused
	for _, r := range ch.Refused {
		name, why := clean(r.Name), clean(strings.TrimPrefix(r.Err.Error(), "tools: "))
		if errors.Is(r.Err, tools.ErrToolDuplicateName) {
			why += s.apart()
		}
		refused = append(refused, Refused{Name: name, Reason: why})
		if !slices.Contains(known, refused[len(refused)-1]) {
			s.log.Warn("a tool cannot be registered", "tool", name, "reason", why)
		}
	}
	if len(ch.Added)+len(ch.Updated)+len(ch.Removed) > 0 {
		s.log.Info("the source's tools are in the catalog", "added", len(ch.Added), "updated", len(ch.Updated),
			"removed", len(ch.Removed), "refused", len(refused))
	}
	s.mu.Lock()
	before := s.before
	s.before, s.served = nil, true
	s.state.State, s.state.Error, s.state.ErrorClass, s.state.Refused = SourceReady, "", "", refused
	s.state.Failures = 0
	s.state.Tools = len(ch.Added) + len(ch.Updated) + ch.Unchanged
	news := !slices.Equal(s.state.Unmatched, unmatched)
	s.state.Unmatched = unmatched
	s.mu.Unlock()
	if news && len(unmatched) > 0 {
		s.log.Warn("keys of the configuration name tools that the source does not have", "keys", strings.Join(unmatched, ", "))
	}
	if before != nil {
		s.retire(before)
	}
}

// serving returns the source whose tools are in the catalog: itself, or the one
// before it as long as it never succeeded, or nil.
func (s *source) serving() *source {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.served {
		return s
	}
	return s.before
}

// note records the end of an attempt.
func (s *source) note(err error) {
	if err != nil {
		s.failed(err)
	}
	select {
	case <-s.first:
	default:
		if s.spec.settled == nil || s.spec.settled() {
			close(s.first)
		}
	}
	s.swapped()
}

func (s *source) failed(err error) {
	why := reason(err)
	s.mu.Lock()
	again := s.state.Error == why
	s.state.State, s.state.Error, s.state.ErrorClass = SourceDown, why, tools.ClassifyError(err, false)
	s.state.Failures++
	before := s.before
	s.mu.Unlock()
	switch {
	case again:
	case before != nil:
		s.log.Warn("the source cannot be replaced yet and serves as before", "error", why)
	default:
		s.log.Warn("the source is down and will be tried again", "error", why)
	}
}

// reason is what a driver says of its failure, without the words with which
// the error of a call begins.
func reason(err error) string {
	if e, ok := errors.AsType[*tools.Error](err); ok {
		return e.SafeMessage()
	}
	return strings.TrimPrefix(err.Error(), "tools: ")
}

// id is the source of the tools in the catalog, or empty when it was never
// reached.
func (s *source) id() tools.ToolSourceID {
	if p := s.current(); p != nil {
		return p.SourceID()
	}
	return ""
}

// shownID is the id of what status tells of: while the source is replaced, of
// the one before.
func (s *source) shownID() tools.ToolSourceID {
	s.mu.Lock()
	before := s.before
	s.mu.Unlock()
	if before != nil {
		return before.shownID()
	}
	return s.id()
}

// status returns a copy of the state.
func (s *source) status() SourceState {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.state
	if s.before != nil {
		now := s.before.status()
		out.State, out.Tools, out.Refused, out.Unmatched = SourceReplacing, now.Tools, now.Refused, now.Unmatched
		return out
	}
	out.Refused, out.Unmatched = append([]Refused(nil), s.state.Refused...), slices.Clone(s.state.Unmatched)
	if out.State != SourceReady || s.spec.health == nil || s.provider == nil {
		return out
	}
	if fault := s.spec.health(s.provider); fault != "" {
		out.State, out.Error, out.ErrorClass = SourceDown, fault, tools.ErrClassTransient
	}
	return out
}

// halt ends the supervision, so that the source no longer touches the catalog.
func (s *source) halt() {
	s.stop()
	<-s.done
}

// close waits until the source's calls have ended or ctx has, and releases
// what the source holds. It must not be called before halt.
func (s *source) close(ctx context.Context) error {
	left := s.calls.close()
	select {
	case <-left:
	case <-ctx.Done():
		select {
		case <-left:
		default:
			s.log.Warn("calls were still running when the source was closed")
		}
	}
	s.mu.Lock()
	provider := s.provider
	s.provider, s.before, s.state.State = nil, nil, SourceClosed
	s.mu.Unlock()
	if s.spec.upstream != nil {
		defer s.spec.upstream.Close()
	}
	if provider == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeProvider)
	defer cancel()
	if err := provider.Close(ctx); err != nil {
		return fmt.Errorf("source %q: %w", s.spec.name, err)
	}
	return nil
}
