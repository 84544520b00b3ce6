package demo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/inproc"
)

// ConvertArgs are the arguments of units.convert.
type ConvertArgs struct {
	Value float64 `json:"value" jsonschema:"how much"`
	From  string  `json:"from" jsonschema:"the unit of value, such as km"`
	To    string  `json:"to" jsonschema:"the unit of the answer, such as mi"`
}

// ConvertResult is the result of units.convert.
type ConvertResult struct {
	Value float64 `json:"value" jsonschema:"how much it is in the other unit"`
	Unit  string  `json:"unit" jsonschema:"the other unit"`
}

func registerConvert(cat tools.ToolCatalog) error {
	return inproc.RegisterFunc(cat, "units.convert", convert,
		tools.WithDescription("Convert a length, a mass or a temperature from one unit to another."),
		tools.WithSideEffect(tools.SideEffectPure),
		tools.WithTags("units"),
		tools.WithInline())
}

// unit is a measure of something: its base unit is value·factor+offset.
type unit struct {
	of             string
	factor, offset float64
}

func units() map[string]unit {
	return map[string]unit{
		"m": {"length", 1, 0}, "km": {"length", 1000, 0}, "cm": {"length", 0.01, 0},
		"mi": {"length", 1609.344, 0}, "ft": {"length", 0.3048, 0}, "in": {"length", 0.0254, 0},
		"kg": {"mass", 1, 0}, "g": {"mass", 0.001, 0}, "lb": {"mass", 0.45359237, 0}, "oz": {"mass", 0.028349523125, 0},
		"C": {"temperature", 1, 273.15}, "F": {"temperature", 5.0 / 9, 459.67 * 5 / 9}, "K": {"temperature", 1, 0},
	}
}

func convert(_ context.Context, in ConvertArgs) (ConvertResult, error) {
	known := units()
	from, ok := known[in.From]
	to, also := known[in.To]
	if !ok || !also {
		return ConvertResult{}, refuse("unknown unit: expected one of %s", strings.Join(slices.Sorted(maps.Keys(known)), ", "))
	}
	if from.of != to.of {
		return ConvertResult{}, refuse("%s measures %s and %s measures %s", in.From, from.of, in.To, to.of)
	}
	return ConvertResult{Value: round((in.Value*from.factor + from.offset - to.offset) / to.factor), Unit: in.To}, nil
}

// round keeps 12 digits, so that 100 °C is 212 °F and not a little less.
func round(v float64) float64 {
	short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 12, 64), 64)
	if err != nil {
		return v // out of range
	}
	return short
}

// refuse is the answer to a request that another attempt would not mend.
func refuse(format string, args ...any) error {
	return &tools.Error{Class: tools.ErrClassPermanent, Delivery: tools.Answered, Message: fmt.Sprintf(format, args...)}
}
