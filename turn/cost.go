package turn

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/toolcrib/toolcrib/tools"
)

// HintedCost reads what a call costs from the tool's cost hint: a number, with or
// without a currency sign before it, or one of the words free (0), cheap or low
// (1), medium or moderate (5), expensive or high (25). Without a hint that it can
// read, a call costs 1 where it may spend money and 0 otherwise.
func HintedCost(tool *tools.Tool, _ json.RawMessage) float64 {
	hint := strings.ToLower(strings.TrimSpace(tool.CostHint))
	switch hint {
	case "free":
		return 0
	case "cheap", "low":
		return 1
	case "medium", "moderate":
		return 5
	case "expensive", "high":
		return 25
	}
	if hint != "" {
		n, err := strconv.ParseFloat(strings.TrimLeft(hint, "$€£"), 64)
		if err == nil && n >= 0 && n <= maxCost {
			return n
		}
	}
	if tool.Safety.Spend == tools.Yes {
		return 1
	}
	return 0
}

// maxCost is more than any call costs.
const maxCost = 1e12
