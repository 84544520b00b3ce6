package stream_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/registry/stream"
)

func TestCheckName(t *testing.T) {
	for _, name := range []string{"a", "toolset:weather:requests", "ünï ✓ *.>", strings.Repeat("n", stream.MaxNameBytes)} {
		if err := stream.CheckName("stream", name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", "\xff", strings.Repeat("n", stream.MaxNameBytes+1)} {
		err := stream.CheckName("subject", name)
		if !errors.Is(err, stream.ErrInvalid) || !strings.Contains(err.Error(), "subject") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestOptionsResolved(t *testing.T) {
	var none *stream.Options
	if o, err := none.Resolved(); err != nil || o.MaxEvents != stream.DefaultMaxEvents {
		t.Errorf("nil = %+v, %v", o, err)
	}
	if o, err := (&stream.Options{MaxEvents: 3, TTL: time.Second}).Resolved(); err != nil || o.MaxEvents != 3 || o.TTL != time.Second {
		t.Errorf("set = %+v, %v", o, err)
	}
	for _, o := range []stream.Options{{MaxEvents: -1}, {TTL: -1}} {
		if _, err := o.Resolved(); !errors.Is(err, stream.ErrInvalid) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestSinkOptionsResolved(t *testing.T) {
	var none *stream.SinkOptions
	if o, err := none.Resolved(); err != nil || o.InFlight != stream.DefaultInFlight || o.Lease != 0 {
		t.Errorf("nil = %+v, %v", o, err)
	}
	dead := func(context.Context, stream.Event) error { return nil }
	if o, err := (&stream.SinkOptions{MaxDeliveries: 2, Dead: dead, Lease: time.Second}).Resolved(); err != nil || o.Lease != time.Second {
		t.Errorf("set = %+v, %v", o, err)
	}
	for _, o := range []stream.SinkOptions{{Lease: time.Millisecond}, {Lease: -1}, {InFlight: -1}, {MaxDeliveries: -1}, {MaxDeliveries: 1}} {
		if _, err := o.Resolved(); !errors.Is(err, stream.ErrInvalid) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
