package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// The contenders, as they stand in the table.
const (
	nameDirect   = "direct, nothing in between"
	nameRaw      = "bare pass-through over TCP"
	nameBare     = "bare pass-through over net/http"
	nameToolcrib = "`toolcrib serve`"
	nameBeside   = "the other `toolcrib serve`"
	nameHub      = "npm `mcp-hub@4.2.1`"
)

// relayTable sets every contender beside the bare pass-through over net/http.
func relayTable(field []*contender) string {
	var direct, bare *contender
	for _, c := range field {
		switch c.name {
		case nameDirect:
			direct = c
		case nameBare:
			bare = c
		}
	}
	var t strings.Builder
	t.WriteString("| a call through `/mcp`, 1 KiB echo | CPU per call | × bare | added p50 | × bare | calls/s | × bare |\n")
	t.WriteString("|---|---|---|---|---|---|---|\n")
	base := median(direct.times)
	for _, c := range field {
		if c.out != nil {
			fmt.Fprintf(&t, "| %s | left out: %s | | | | | |\n", c.name, firstLine(c.out.Error()))
			continue
		}
		fmt.Fprintf(&t, "| %s |", c.name)
		if c == direct {
			t.WriteString(" – | – | – | – |")
		} else {
			added, bareAdded := median(c.times)-base, median(bare.times)-base
			fmt.Fprintf(&t, " %s | %.2f | %s | %.2f |", micros(c.perCall()), over(c.perCall(), bare.perCall()), micros(added), over(added, bareAdded))
		}
		fmt.Fprintf(&t, " %.0f | %.2f |\n", median(c.rates), paired(c.rates, bare.rates))
	}
	return t.String()
}

func startTable(field []*starter) string {
	var t strings.Builder
	t.WriteString("| start | ready | × bare | resident when idle |\n|---|---|---|---|\n")
	for _, s := range field {
		fmt.Fprintf(&t, "| %s | %.1f ms | %.1f | %.1f MB |\n", s.name, median(s.ready).Seconds()*1000,
			over(median(s.ready), median(field[0].ready)), float64(s.memory)/(1<<20))
	}
	return t.String()
}

// firstTable has the quickest beside the median, as a program that takes longer
// is hit more often by what else the machine does.
func firstTable(field []*firstCall) string {
	var t strings.Builder
	fmt.Fprintf(&t, "| start, list of %s tools, and a call | p50 | × bare | quickest | × bare | CPU | target |\n|---|---|---|---|---|---|---|\n", manyTools)
	bare := field[0]
	for _, f := range field {
		target := ""
		if f.name == nameToolcrib {
			target = "≤ 5 × bare"
		}
		quickest := slices.Min(f.took)
		fmt.Fprintf(&t, "| %s | %s | %.1f | %s | %.1f | %s | %s |\n", f.name, millis(median(f.took)), over(median(f.took), median(bare.took)),
			millis(quickest), over(quickest, slices.Min(bare.took)), millis(median(f.load)), target)
	}
	return t.String()
}

func millis(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1000) }

func micros(d time.Duration) string { return fmt.Sprintf("%d µs", d.Microseconds()) }

func over(a, b time.Duration) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// paired is the median of the ratios of what was measured in the same round.
func paired(a, b []float64) float64 {
	ratios := make([]float64, min(len(a), len(b)))
	for i := range ratios {
		ratios[i] = a[i] / b[i]
	}
	return median(ratios)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return strings.ReplaceAll(line, "|", "/")
}
