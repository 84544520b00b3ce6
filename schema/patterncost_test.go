package schema_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/internal/peertest"
	"github.com/toolcrib/toolcrib/schema"
)

// Whoever writes both a pattern and what is matched keeps a check busy for no
// longer than its budget.
func TestPatternsThatRepeatMuch(t *testing.T) {
	for pattern, good := range map[string]string{
		strings.Repeat("(a?){1000}", 4) + "b":   "",
		strings.Repeat("(a?){1000}", 400) + "b": "",
		"^a{1,1000}$":                           strings.Repeat("a", 1000),
		"^[a-z ]+$":                             strings.Repeat("a b ", 100_000),
	} {
		doc, err := json.Marshal(map[string]string{"type": "string", "pattern": pattern})
		if err != nil {
			t.Fatal(err)
		}
		s, err := schema.Compile(doc, nil)
		if err != nil {
			t.Fatal(err)
		}
		if good != "" && s.Check([]byte(`"`+good+`"`)) != nil {
			t.Errorf("%.30s refuses what matches", pattern)
		}
		began := peertest.Busy()
		err = s.Check([]byte(`"` + strings.Repeat("a", 32<<10) + `B"`))
		if took := peertest.Busy() - began; err == nil || took > 3*time.Second {
			t.Errorf("%.30s: %v after %v", pattern, err, took)
		}
	}
}
