package tools

import "sync/atomic"

// lateness counts calls whose tool ignored the end of its context.
type lateness struct{ lingering, dropped atomic.Int64 }

// Lateness is how many calls were answered without their tool.
type Lateness struct {
	// Lingering is how many of them still run.
	Lingering int64
	// Dropped is how many results came too late and were dropped.
	Dropped int64
}

// Lateness returns the counts since the catalog was made.
func (c *catalog) Lateness() Lateness {
	return Lateness{Lingering: c.late.lingering.Load(), Dropped: c.late.dropped.Load()}
}
