package stream

import "fmt"

// Resolved returns the options with defaults for zero fields. A nil o has them
// all. ErrInvalid names a field that is negative.
func (o *Options) Resolved() (Options, error) {
	r := Options{MaxEvents: DefaultMaxEvents}
	if o == nil {
		return r, nil
	}
	if o.MaxEvents < 0 || o.TTL < 0 {
		return r, fmt.Errorf("%w: MaxEvents and TTL of a stream may not be negative: %+v", ErrInvalid, *o)
	}
	if o.MaxEvents > 0 {
		r.MaxEvents = o.MaxEvents
	}
	r.TTL = o.TTL
	return r, nil
}

// Resolved returns the options with defaults for zero fields, but for Lease,
// whose zero asks for what the sink has. A nil o has them all. ErrInvalid names
// a field that is against the rules.
func (o *SinkOptions) Resolved() (SinkOptions, error) {
	if o == nil {
		return SinkOptions{InFlight: DefaultInFlight}, nil
	}
	r := *o
	if r.InFlight == 0 {
		r.InFlight = DefaultInFlight
	}
	switch {
	case r.Lease != 0 && r.Lease < MinLease:
		return r, fmt.Errorf("%w: a lease of %v is shorter than %v", ErrInvalid, r.Lease, MinLease)
	case r.InFlight < 0 || r.MaxDeliveries < 0:
		return r, fmt.Errorf("%w: InFlight and MaxDeliveries of a sink may not be negative", ErrInvalid)
	case r.MaxDeliveries > 0 && r.Dead == nil:
		return r, fmt.Errorf("%w: a sink with MaxDeliveries needs Dead, to which the events go that reach it", ErrInvalid)
	}
	return r, nil
}
