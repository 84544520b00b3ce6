// Package skill declares workflows over tools and runs them, step by step and
// always in the same order.
//
// A [Skill] is a list of steps; each names a tool and the inputs that it is
// called with. A [Planner] checks it and gives a [Plan], and [Execute] runs the
// plan over a [Runner]:
//
//	planner := skill.NewPlanner(skill.PlannerOptions{Runner: exec.NewRunner(catalog)})
//	plan, err := planner.Plan(s)
//	results, err := skill.Execute(ctx, plan, nil)
//
// Steps run one after the other, sorted by ID in natural order ("2" before
// "10"). Where a step declares what it needs, they run in the order of those
// needs instead, and by ID where the needs leave a choice. The first step that
// fails ends the execution; the results up to it are returned beside the error.
// Steps are not repeated: that is the business of each tool's own policy.
//
// Strings in a step's inputs may hold expressions: ${{ inputs.title }} reads the
// skill's own inputs, and ${{ steps.find.items[0].id }} what a step before gave.
package skill
