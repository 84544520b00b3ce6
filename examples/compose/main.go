// Command compose makes larger tools of smaller ones: a set, a skill and a flow.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log"

	"github.com/toolcrib/toolcrib/adapter"
	"github.com/toolcrib/toolcrib/exec"
	"github.com/toolcrib/toolcrib/set"
	"github.com/toolcrib/toolcrib/skill"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/flow"
)

//go:embed borrow.yaml
var borrowSkill []byte

//go:embed reserve.yaml
var reserveFlow []byte

// reading is the set of the tools that change nothing.
func reading(cat tools.LiveCatalog) error {
	ts, err := set.NewBuilder("library-reading").
		FromRegistry(cat).
		WithNamespace("library").
		WithPolicy(set.DenyTags("write")).
		Build()
	if err != nil {
		return err
	}
	declared, warnings, errs := set.NewExposure(ts, adapter.NewMCPAdapter()).ExportWithWarnings()
	fmt.Println(ts.IDs(), len(declared), len(warnings))
	return errors.Join(errs...)
}

// borrow runs a skill: its steps one after the other, in an order that does not
// change.
func borrow(ctx context.Context, cat tools.LiveCatalog) error {
	s, err := skill.ParseYAML("borrow.yaml", borrowSkill)
	if err != nil {
		return err
	}
	planner := skill.NewPlanner(skill.PlannerOptions{
		Runner: exec.NewRunner(cat),
		Guards: []skill.Guard{skill.MaxStepsGuard(5), skill.AllowedToolIDsGuard("library.search", "library.lend")},
	})
	plan, err := planner.Plan(s)
	if err != nil {
		return err
	}
	if plan, err = plan.With(json.RawMessage(`{"title":"Middlemarch"}`)); err != nil {
		return err
	}
	given, _, err := skill.Run(ctx, plan, nil)
	fmt.Println(given)
	return err
}

// reserve registers a flow as a tool and calls it twice: its branches lead to
// different tools.
func reserve(ctx context.Context, cat tools.LiveCatalog) error {
	def, err := flow.ParseYAML("reserve.yaml", reserveFlow)
	if err != nil {
		return err
	}
	f, err := flow.Compose(def, &flow.Options{Runner: exec.NewRunner(cat)})
	if err != nil {
		return err
	}
	if err := flow.RegisterAsTool(cat, f); err != nil {
		return err
	}
	for _, args := range []string{`{"title":"Middlemarch"}`, `{"title":"Emma"}`} {
		result, err := tools.Invoke(ctx, cat, "library_reserve", json.RawMessage(args))
		if err != nil {
			return err
		}
		out, _ := result.JSON()
		fmt.Println(string(out))
	}
	return nil
}

func main() {
	ctx := context.Background()
	cat, err := library()
	if err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(reading(cat), borrow(ctx, cat), reserve(ctx, cat)); err != nil {
		log.Fatal(err)
	}
}
