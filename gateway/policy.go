package gateway

import (
	"time"

	"github.com/toolcrib/toolcrib/tools"
)

// toolPolicy returns the policy in the words of package tools. nil is the zero
// policy.
func (p *Policy) toolPolicy() tools.ToolPolicy { return p.over(tools.ToolPolicy{}) }

// over lays what p sets over base.
func (p *Policy) over(base tools.ToolPolicy) tools.ToolPolicy {
	if p == nil {
		return base
	}
	switch {
	case p.MaxAttempts == 1:
		base.MaxRetries = -1 // 0 would mean the default
	case p.MaxAttempts > 1:
		base.MaxRetries = p.MaxAttempts - 1
	}
	if p.TimeoutMS != 0 {
		base.TimeoutMS = p.TimeoutMS
	}
	if p.RetryOn != nil {
		base.RetryOn = append([]tools.ErrorClass{}, p.RetryOn...)
	}
	if p.BackoffBaseMS > 0 {
		base.BackoffBase = time.Duration(p.BackoffBaseMS) * time.Millisecond
	}
	if p.BackoffMult > 0 {
		base.BackoffMult = p.BackoffMult
	}
	if p.Validate != "" {
		base.Validate = p.Validate
	}
	if p.BackoffMaxMS > 0 {
		base.BackoffMax = time.Duration(p.BackoffMaxMS) * time.Millisecond
	}
	return base
}
