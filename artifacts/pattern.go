package artifacts

import (
	"errors"

	"github.com/toolcrib/toolcrib/internal/effort"
)

// maxPatternSteps bounds what a regular expression does for each character in the
// worst case. No clock interrupts it while it looks at one text.
const maxPatternSteps = 2000

var errPattern = errors.New("the regular expression is too large: repeat less in it")

// checkPattern refuses an expression that takes too long for each character. One
// that cannot be read is left to whoever compiles it.
func checkPattern(expression string) error {
	if !effort.Within(expression, maxPatternSteps) {
		return errPattern
	}
	return nil
}
