// Package expr evaluates CEL expressions over JSON values.
//
// An [Env] declares the variables and, as far as it is known, what they hold, as
// JSON Schemas: an expression that reads a member which cannot be there is
// refused when it is compiled. A [Program] is one compiled expression, and a
// [Template] a JSON value with expressions in its strings:
//
//	{"title": "${{ inputs.title }}", "note": "for ${{ steps.find.items[0].name }}"}
//
// A string that is one expression becomes the expression's value, of whatever
// type; in a longer string the value is written into the text. A path alone, as
// in the first, carries its value over as it is, numbers of any size included.
//
// Expressions see their variables and nothing else, and what one evaluation may
// cost is bounded.
package expr
