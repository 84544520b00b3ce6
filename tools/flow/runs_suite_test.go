package flow_test

import (
	"testing"

	"github.com/toolcrib/toolcrib/tools/flow"
	"github.com/toolcrib/toolcrib/tools/flow/flowtest"
)

func TestLog(t *testing.T) {
	flowtest.Run(t, func(*testing.T) flow.Runs { return flow.NewLog(nil) })
}
