package artifacts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/itchyny/gojq"
)

// The functions that guards call. No query can name them, as they are not in
// the list of what it may use.
const (
	guardAll    = "_toolcrib_all"    // counts a value that was made
	guardCount  = "_toolcrib_count"  // counts that a value is kept
	guardSmall  = "_toolcrib_small"  // demands a small value
	guardTiny   = "_toolcrib_tiny"   // demands a tiny value
	guardFactor = "_toolcrib_factor" // demands what is no string
	guardJoin   = "_toolcrib_join"   // is join with a bound
)

// What queries may use, by how it is guarded. A function that makes much of
// little in one step, which no clock interrupts, is in none of the lists.
var (
	plainFunctions = strings.Fields(`abs add all any arrays booleans ceil empty endswith error finites first flatten floor
		from_entries fromdate fromdateiso8601 getpath group_by has in infinite IN INDEX isempty isfinite isinfinite isnan isnormal iterables keys
		keys_unsorted last leaf_paths length limit ltrimstr map map_values max max_by min min_by nan normals not now nth nulls
		numbers objects paths pow range recurse repeat reverse round rtrimstr scalars select skip sort sort_by sqrt startswith strings
		to_entries toarray toboolean todate todateiso8601 tonumber type unique unique_by until utf8bytelength values walk while with_entries`)
	// smallFunctions work on small values only.
	smallFunctions = strings.Fields(`ascii_downcase ascii_upcase date dateadd fromjson gmtime ltrim mktime rtrim split
		strftime strptime tojson tostring trim`)
	// patternFunctions take a regular expression, which must be written out.
	patternFunctions = strings.Fields(`capture match scan splits test`)
	// compareFunctions compare each element with each.
	compareFunctions = strings.Fields(`contains index indices inside rindex`)
	// pathFunctions take a path, in which nothing is computed.
	pathFunctions = strings.Fields(`del path pick`)
)

// guardQuery puts guards into a query. It changes the query and returns it.
func guardQuery(q *gojq.Query) (*gojq.Query, error) {
	if q == nil {
		return nil, nil
	}
	if q.Meta != nil || len(q.Imports) > 0 || len(q.FuncDefs) > 0 {
		return nil, fmt.Errorf("queries have no imports and define no functions")
	}
	if err := guardPatterns(q.Patterns); err != nil {
		return nil, err
	}
	switch {
	case q.Term != nil:
		return guardTerm(q)
	case q.Right == nil: // nothing but a comment
		return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeIdentity}}, nil
	}
	var err error
	if q.Left, err = guardQuery(q.Left); err != nil {
		return nil, err
	}
	if q.Right, err = guardQuery(q.Right); err != nil {
		return nil, err
	}
	return guardOperator(q)
}

func guardOperator(q *gojq.Query) (*gojq.Query, error) {
	switch q.Op {
	case gojq.OpPipe, gojq.OpComma, gojq.OpAlt, gojq.OpAnd, gojq.OpOr, gojq.OpEq, gojq.OpNe, gojq.OpGt, gojq.OpLt, gojq.OpGe, gojq.OpLe:
		return q, nil
	case gojq.OpAdd, gojq.OpMod:
	case gojq.OpSub:
		q.Left, q.Right = then(q.Left, guardSmall), then(q.Right, guardTiny)
	case gojq.OpMul:
		q.Left, q.Right = then(q.Left, guardFactor), then(q.Right, guardFactor)
	case gojq.OpDiv:
		q.Left, q.Right = then(q.Left, guardSmall), then(q.Right, guardTiny)
	default:
		return nil, fmt.Errorf("the operator %s is not available: a query reads, and changes nothing", q.Op)
	}
	return then(q, guardAll), nil
}

// then pipes a query into a guard.
func then(q *gojq.Query, guard string) *gojq.Query {
	return &gojq.Query{Left: q, Op: gojq.OpPipe, Right: call(guard)}
}

func call(name string, args ...*gojq.Query) *gojq.Query {
	return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: name, Args: args}}}
}

// each guards queries in their places.
func each(queries ...**gojq.Query) error {
	for _, q := range queries {
		if *q == nil {
			continue
		}
		var err error
		if *q, err = guardQuery(*q); err != nil {
			return err
		}
	}
	return nil
}

func guardTerm(q *gojq.Query) (*gojq.Query, error) {
	t := q.Term
	for _, s := range t.SuffixList {
		if err := guardIndex(s.Index); err != nil {
			return nil, err
		}
	}
	if err := guardParts(t); err != nil {
		return nil, err
	}
	switch t.Type {
	case gojq.TermTypeFunc:
		return guardFunction(q)
	case gojq.TermTypeFormat:
		if t.Str == nil {
			q = &gojq.Query{Left: call(guardSmall), Op: gojq.OpPipe, Right: q}
		}
		return then(q, guardAll), nil
	case gojq.TermTypeString, gojq.TermTypeObject, gojq.TermTypeArray, gojq.TermTypeReduce, gojq.TermTypeForeach:
		return then(q, guardAll), nil
	}
	return q, nil
}

// guardParts guards the queries inside of a term.
func guardParts(t *gojq.Term) error {
	switch t.Type {
	case gojq.TermTypeIndex:
		return guardIndex(t.Index)
	case gojq.TermTypeQuery:
		return each(&t.Query)
	case gojq.TermTypeString, gojq.TermTypeFormat:
		return guardString(t.Str)
	case gojq.TermTypeUnary:
		inner, err := guardTerm(&gojq.Query{Term: t.Unary.Term})
		t.Unary.Term = &gojq.Term{Type: gojq.TermTypeQuery, Query: inner}
		return err
	case gojq.TermTypeArray:
		if t.Array.Query == nil {
			return nil
		}
		err := each(&t.Array.Query)
		t.Array.Query = then(t.Array.Query, guardCount)
		return err
	case gojq.TermTypeObject:
		return guardObject(t.Object)
	case gojq.TermTypeTry:
		return each(&t.Try.Body, &t.Try.Catch)
	case gojq.TermTypeLabel:
		return each(&t.Label.Body)
	case gojq.TermTypeIf, gojq.TermTypeReduce, gojq.TermTypeForeach:
		return guardControl(t)
	}
	return nil
}

func guardControl(t *gojq.Term) error {
	switch t.Type {
	case gojq.TermTypeIf:
		for _, e := range t.If.Elif {
			if err := each(&e.Cond, &e.Then); err != nil {
				return err
			}
		}
		return each(&t.If.Cond, &t.If.Then, &t.If.Else)
	case gojq.TermTypeReduce:
		if err := guardPatterns(t.Reduce.Patterns); err != nil {
			return err
		}
		err := each(&t.Reduce.Query, &t.Reduce.Start, &t.Reduce.Update)
		t.Reduce.Update = then(t.Reduce.Update, guardAll)
		return err
	}
	if err := guardPatterns(t.Foreach.Patterns); err != nil {
		return err
	}
	err := each(&t.Foreach.Query, &t.Foreach.Start, &t.Foreach.Update, &t.Foreach.Extract)
	t.Foreach.Update = then(t.Foreach.Update, guardAll)
	return err
}

func guardIndex(i *gojq.Index) error {
	if i == nil {
		return nil
	}
	if err := guardString(i.Str); err != nil {
		return err
	}
	return each(&i.Start, &i.End)
}

// guardString demands that what is written into a string is small.
func guardString(s *gojq.String) error {
	if s == nil {
		return nil
	}
	for i, q := range s.Queries {
		if q.Term != nil && q.Term.Type == gojq.TermTypeString && len(q.Term.Str.Queries) == 0 {
			continue // the text between
		}
		if err := each(&s.Queries[i]); err != nil {
			return err
		}
		s.Queries[i] = &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeQuery, Query: then(s.Queries[i], guardSmall)}}
	}
	return nil
}

func guardObject(o *gojq.Object) error {
	for _, kv := range o.KeyVals {
		if err := guardString(kv.KeyString); err != nil {
			return err
		}
		if strings.HasPrefix(kv.Key, "$") {
			if err := checkVariable(kv.Key); err != nil {
				return err
			}
		}
		if err := each(&kv.KeyQuery, &kv.Val); err != nil {
			return err
		}
	}
	return nil
}

func guardPatterns(list []*gojq.Pattern) error {
	for _, p := range list {
		if err := guardPattern(p); err != nil {
			return err
		}
	}
	return nil
}

func guardPattern(p *gojq.Pattern) error {
	if p == nil {
		return nil
	}
	for _, o := range p.Object {
		if err := guardString(o.KeyString); err != nil {
			return err
		}
		if err := each(&o.KeyQuery); err != nil {
			return err
		}
		if err := guardPattern(o.Val); err != nil {
			return err
		}
	}
	return guardPatterns(p.Array)
}

// checkVariable refuses the variables that come from outside of the query.
func checkVariable(name string) error {
	if name == "$ENV" || name == "$__loc__" || name == "$__prog_args" {
		return fmt.Errorf("%s is not available in queries", name)
	}
	return nil
}

func guardFunction(q *gojq.Query) (*gojq.Query, error) {
	f := q.Term.Func
	if strings.HasPrefix(f.Name, "$") {
		return q, checkVariable(f.Name)
	}
	if slices.Contains(pathFunctions, f.Name) {
		for _, arg := range f.Args {
			if err := checkPath(arg); err != nil {
				return nil, err
			}
		}
		return then(q, guardAll), nil
	}
	literal, pattern := len(f.Args) > 0 && isLiteral(f.Args[0]), ""
	if literal {
		pattern = f.Args[0].Term.Str.Str
	}
	for i := range f.Args {
		if err := each(&f.Args[i]); err != nil {
			return nil, err
		}
		f.Args[i] = then(f.Args[i], guardCount)
	}
	small := &gojq.Query{Left: call(guardSmall), Op: gojq.OpPipe, Right: q}
	switch {
	case slices.Contains(plainFunctions, f.Name):
		return then(q, guardAll), nil
	case slices.Contains(smallFunctions, f.Name):
		for i := range f.Args {
			f.Args[i] = then(f.Args[i], guardTiny)
		}
		return then(small, guardAll), nil
	case slices.Contains(patternFunctions, f.Name):
		if !literal {
			return nil, fmt.Errorf("the pattern of %s must be written out as a string", f.Name)
		}
		if err := checkPattern(pattern); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		return then(small, guardAll), nil
	case slices.Contains(compareFunctions, f.Name):
		for i := range f.Args {
			f.Args[i] = then(f.Args[i], guardTiny)
		}
		return then(small, guardAll), nil
	case f.Name == "join" && len(f.Args) == 1:
		f.Name = guardJoin
		return then(q, guardAll), nil
	}
	return nil, fmt.Errorf("%s is not available in queries", f.Name)
}

func isLiteral(q *gojq.Query) bool {
	return q.Term != nil && q.Term.Type == gojq.TermTypeString && len(q.Term.Str.Queries) == 0 && len(q.Term.SuffixList) == 0
}

// checkPath demands a path that only names places: fields, indexes, slices and
// iterations, one after the other or side by side.
func checkPath(q *gojq.Query) error {
	if q.Term == nil && len(q.FuncDefs) == 0 && len(q.Patterns) == 0 && (q.Op == gojq.OpPipe || q.Op == gojq.OpComma) {
		if err := checkPath(q.Left); err != nil {
			return err
		}
		return checkPath(q.Right)
	}
	if q.Term == nil || !isPlace(q.Term) {
		return fmt.Errorf("del, path and pick take paths such as .a.b[0], .[2:4] and .items[].name")
	}
	return nil
}

func isPlace(t *gojq.Term) bool {
	switch t.Type {
	case gojq.TermTypeIdentity, gojq.TermTypeRecurse:
	case gojq.TermTypeIndex:
		if !isFixed(t.Index) {
			return false
		}
	case gojq.TermTypeQuery:
		if checkPath(t.Query) != nil {
			return false
		}
	default:
		return false
	}
	for _, s := range t.SuffixList {
		if s.Index != nil && !isFixed(s.Index) {
			return false
		}
	}
	return true
}

// isFixed reports whether an index is written out.
func isFixed(i *gojq.Index) bool {
	if i.Str != nil && len(i.Str.Queries) > 0 {
		return false
	}
	for _, q := range []*gojq.Query{i.Start, i.End} {
		if q == nil {
			continue
		}
		if q.Term == nil || len(q.Term.SuffixList) > 0 {
			return false
		}
		switch q.Term.Type {
		case gojq.TermTypeNumber, gojq.TermTypeString:
		case gojq.TermTypeUnary:
			if q.Term.Unary.Term.Type != gojq.TermTypeNumber {
				return false
			}
		default:
			return false
		}
	}
	return true
}
