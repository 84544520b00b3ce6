// Package builtin holds small tools that travel with Toolcrib. An operator
// turns each on by name.
package builtin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // so that clock.now knows every zone on a bare machine

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/inproc"
)

// ErrUnknown: there is no built-in tool of that name.
var ErrUnknown = errors.New("builtin: unknown tool")

// Names lists the built-in tools, sorted.
func Names() []string { return slices.Sorted(maps.Keys(registrations())) }

// Register adds the named built-in tools to a catalog. It returns ErrUnknown
// with the known names, or the error of the catalog; tools before the one that
// failed stay registered.
func Register(cat tools.ToolCatalog, names ...string) error {
	known := registrations()
	for _, name := range names {
		register, ok := known[name]
		if !ok {
			return fmt.Errorf("%w %q; expected one of %s", ErrUnknown, name, strings.Join(Names(), ", "))
		}
		if err := register(cat); err != nil {
			return fmt.Errorf("builtin: %s: %w", name, err)
		}
	}
	return nil
}

func registrations() map[string]func(tools.ToolCatalog) error {
	return map[string]func(tools.ToolCatalog) error{
		"clock.now": registerClock,
		"text.echo": registerEcho,
		CallName:    always(CallName),
		GetName:     always(GetName),
		SearchName:  always(SearchName),
	}
}

// always returns what adds a meta-tool that is always declared.
func always(name string) func(tools.ToolCatalog) error {
	return func(cat tools.ToolCatalog) error {
		live, ok := cat.(tools.LiveCatalog)
		if !ok {
			return errors.New("the catalog cannot be read at one moment, as the tool needs")
		}
		return registerMeta(live, &MetaOptions{Loading: tools.LoadingAlways}, name)
	}
}

// ClockArgs are the arguments of clock.now.
type ClockArgs struct {
	TZ string `json:"tz,omitempty" jsonschema:"IANA name of a time zone, such as Europe/Berlin; UTC when absent"`
}

// ClockResult is the result of clock.now.
type ClockResult struct {
	Now      string `json:"now" jsonschema:"the time in the zone, as RFC 3339 writes it"`
	UnixMS   int64  `json:"unix_ms" jsonschema:"milliseconds since 1970 UTC"`
	Timezone string `json:"timezone" jsonschema:"the zone of now"`
}

func registerClock(cat tools.ToolCatalog) error {
	return inproc.RegisterFunc(cat, "clock.now", clockNow,
		tools.WithDescription("Tell the current date and time, in UTC or in a given time zone."),
		tools.WithSideEffect(tools.SideEffectRead),
		tools.WithCategory("time"),
		tools.WithInline())
}

func clockNow(_ context.Context, in ClockArgs) (ClockResult, error) {
	zone, err := location(in.TZ)
	if err != nil {
		return ClockResult{}, err
	}
	now := time.Now().In(zone)
	return ClockResult{Now: now.Format(time.RFC3339Nano), UnixMS: now.UnixMilli(), Timezone: zone.String()}, nil
}

// location refuses "Local", which would tell where the server stands.
func location(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, &tools.Error{Class: tools.ErrClassPermanent, Delivery: tools.Answered,
			Message: "unknown time zone: expected an IANA name such as Europe/Berlin or America/New_York"}
	}
	return zone, nil
}

// EchoArgs are the arguments of text.echo.
type EchoArgs struct {
	Text string `json:"text" jsonschema:"what to give back"`
}

// EchoResult is the result of text.echo.
type EchoResult struct {
	Text string `json:"text" jsonschema:"the text that was given"`
}

func registerEcho(cat tools.ToolCatalog) error {
	return inproc.RegisterFunc(cat, "text.echo", echo,
		tools.WithDescription("Give the text back unchanged; useful to try the connection."),
		tools.WithSideEffect(tools.SideEffectPure),
		tools.WithCategory("text"),
		tools.WithInline())
}

func echo(_ context.Context, in EchoArgs) (EchoResult, error) {
	return EchoResult(in), nil
}
