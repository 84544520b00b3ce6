// Package turn runs a model's turn: it fixes which tools are declared to the
// model, takes the calls that the model answers with, and gives back exactly one
// result for each, in call order, whatever happens.
//
// A [Runner] is made once for a catalog. Each run of an agent is a [Run], and
// each request to the model in it begins with [Run.Begin]:
//
//	t, err := run.Begin(ctx)          // fixes what is declared
//	request.Tools = t.Tools()         // shown to the model
//	results, err := t.Execute(ctx, calls)
//
// A turn fails closed. What was not declared in it is not run, and arguments that
// are malformed, do not satisfy the schema, or hold what is hidden from models are
// refused and never replaced. The model is told of it in a result that it can
// repair, unless [Options.BadCalls] says otherwise.
//
// Every call goes through the door of the catalog, those that the turn refuses
// too, so that each has one terminal event and there is no other way to run a
// tool. What the turn demands is the guard of its entrance ([tools.Guard]), which
// also means that a call which is redirected is judged as its target.
package turn
