package registry

import (
	"testing"

	"github.com/toolcrib/toolcrib/tools"
)

// An error that has a code and no text of its own says in a result what the code
// means.
func TestErrorOfSaysWhat(t *testing.T) {
	for code, want := range map[error]string{tools.ErrToolNotFound: CodeToolNotFound, tools.ErrOverloaded: CodeOverloaded, tools.ErrUnavailable: CodeUnavailable} {
		e := ErrorOf(&tools.Error{Code: code})
		if e.Code != want || e.Message != code.Error() {
			t.Errorf("ErrorOf(%v) = %+v", code, e)
		}
	}
}
