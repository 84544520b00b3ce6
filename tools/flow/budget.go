package flow

import (
	"context"
	"fmt"
	"sync"
)

// Axis is what a budget limits.
type Axis string

// The Axis values.
const (
	AxisDeadline Axis = "deadline"
	AxisHops     Axis = "hops"
	AxisCalls    Axis = "calls"
	AxisCost     Axis = "cost"
)

// BudgetError says which limit a run met. It is ErrFlowBudgetExceeded.
type BudgetError struct {
	// Flow is the flow whose budget it was, or empty for the caller's.
	Flow string
	Axis Axis
	// Limit is in seconds, nodes, calls, or the unit of cost.
	Limit float64

	of *meter // that refused
}

// Error names the flow, the axis and the limit.
func (e *BudgetError) Error() string {
	whose := "the caller's"
	if e.Flow != "" {
		whose = fmt.Sprintf("%q's", e.Flow)
	}
	unit := map[Axis]string{AxisDeadline: "s", AxisHops: " nodes", AxisCalls: " calls", AxisCost: ""}[e.Axis]
	return fmt.Sprintf("%v: %s %s of %g%s", ErrFlowBudgetExceeded, whose, e.Axis, e.Limit, unit)
}

// Is makes the error ErrFlowBudgetExceeded, and one of time a passed deadline.
func (e *BudgetError) Is(target error) bool {
	return target == ErrFlowBudgetExceeded || target == context.DeadlineExceeded && e.Axis == AxisDeadline
}

// meter counts what a run spends, of its own budget and of those around it.
type meter struct {
	flow   string
	limits Budget
	outer  *meter

	mu    sync.Mutex
	spent Budget
}

type meterKey struct{}

// WithBudget returns a context whose flows spend of b beside their own budgets.
// The time of b begins now.
func WithBudget(ctx context.Context, b Budget) (context.Context, context.CancelFunc) {
	outer, _ := ctx.Value(meterKey{}).(*meter)
	m := &meter{limits: b, outer: outer}
	return timeout(context.WithValue(ctx, meterKey{}, m), b.Deadline, m.deadline())
}

func newMeter(ctx context.Context, f *Flow) *meter {
	outer, _ := ctx.Value(meterKey{}).(*meter)
	return &meter{flow: f.name, limits: f.budget, outer: outer}
}

// deadline is the error of a run that took too long.
func (m *meter) deadline() error { return m.exceeded(AxisDeadline, m.limits.Deadline.Seconds()) }

func (m *meter) exceeded(axis Axis, limit float64) error {
	return &BudgetError{Flow: m.flow, Axis: axis, Limit: limit, of: m}
}

// holds reports whether the limit that was met is one of m or of those around it, so
// that nothing more can be spent of m either.
func (m *meter) holds(e *BudgetError) bool {
	for at := m; at != nil; at = at.outer {
		if at == e.of {
			return true
		}
	}
	return false
}

// spend takes from every budget, or from none.
func (m *meter) spend(cost Budget) error {
	for at := m; at != nil; at = at.outer {
		if err := at.take(cost); err != nil {
			for back := m; back != at; back = back.outer {
				back.give(cost)
			}
			return err
		}
	}
	return nil
}

func (m *meter) take(cost Budget) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := Budget{HopBudget: m.spent.HopBudget + cost.HopBudget, Calls: m.spent.Calls + cost.Calls, CostCap: m.spent.CostCap + cost.CostCap}
	switch {
	case m.limits.HopBudget > 0 && next.HopBudget > m.limits.HopBudget:
		return m.exceeded(AxisHops, float64(m.limits.HopBudget))
	case m.limits.Calls > 0 && next.Calls > m.limits.Calls:
		return m.exceeded(AxisCalls, float64(m.limits.Calls))
	case m.limits.CostCap > 0 && next.CostCap > m.limits.CostCap:
		return m.exceeded(AxisCost, m.limits.CostCap)
	}
	m.spent = next
	return nil
}

func (m *meter) give(cost Budget) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.spent.HopBudget -= cost.HopBudget
	m.spent.Calls -= cost.Calls
	m.spent.CostCap -= cost.CostCap
}
