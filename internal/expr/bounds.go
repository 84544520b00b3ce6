package expr

import (
	"errors"
	"fmt"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

const (
	// maxText bounds, in bytes, a text that is put together of others.
	maxText = 16 << 20
	// maxJoined bounds how many texts one call puts together.
	maxJoined = 1 << 18
	// maxResult bounds what one evaluation gives, in bytes of text and
	// perValue for each value. A value that stands in the result many times
	// counts each time, as it does for whoever encodes it.
	maxResult = 64 << 20
	perValue  = 32
)

var (
	errLongText  = fmt.Errorf("the text would have more than %d bytes", maxText)
	errManyTexts = fmt.Errorf("the text would have more than %d parts", maxJoined)
	errBigResult = errors.New("the result is too large")
)

// growing are the functions whose result can be larger than all that they are
// given together: CEL counts what a call cost once it was made, when the memory is
// gone already. They stand in for those of the same names in ext.Strings.
func growing() []cel.EnvOption {
	text, list := cel.StringType, cel.ListType(cel.StringType)
	replacing := cel.FunctionBinding(replaceText)
	return []cel.EnvOption{
		cel.Function("replace",
			cel.MemberOverload("string_replace_string_string", []*cel.Type{text, text, text}, text, replacing),
			cel.MemberOverload("string_replace_string_string_int", []*cel.Type{text, text, text, cel.IntType}, text, replacing)),
		cel.Function("join",
			cel.MemberOverload("list_join", []*cel.Type{list}, text, cel.UnaryBinding(func(l ref.Val) ref.Val { return joinTexts(l, types.String("")) })),
			cel.MemberOverload("list_join_string", []*cel.Type{list, text}, text, cel.BinaryBinding(joinTexts))),
	}
}

func replaceText(args ...ref.Val) ref.Val {
	in, from, to := string(args[0].(types.String)), string(args[1].(types.String)), string(args[2].(types.String))
	times := strings.Count(in, from)
	if len(args) > 3 {
		if most := args[3].(types.Int); most >= 0 {
			times = int(min(types.Int(times), most))
		}
	}
	if more := len(to) - len(from); more > 0 && times > (maxText-len(in))/more {
		return types.WrapErr(errLongText)
	}
	return types.String(strings.Replace(in, from, to, times))
}

func joinTexts(list, separator ref.Val) ref.Val {
	between := string(separator.(types.String))
	var text strings.Builder
	n := 0
	for it := list.(traits.Lister).Iterator(); it.HasNext() == types.True; n++ {
		element := it.Next()
		part, ok := element.(types.String)
		if !ok {
			return types.MaybeNoSuchOverloadErr(element)
		}
		if n == maxJoined {
			return types.WrapErr(errManyTexts)
		}
		if text.Len()+len(between)+len(part) > maxText {
			return types.WrapErr(errLongText)
		}
		if n > 0 {
			text.WriteString(between)
		}
		text.WriteString(string(part))
	}
	return types.String(text.String())
}

// exporter turns values of CEL into those that encoding/json can encode, as long as
// they are not too large together.
type exporter struct{ left int }

func (e *exporter) take(bytes int) error {
	if e.left -= perValue + bytes; e.left < 0 {
		return errBigResult
	}
	return nil
}
