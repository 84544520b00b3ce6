package flow

import (
	"fmt"
	"strings"
)

// Mermaid draws the flow as a Mermaid flowchart.
func (f *Flow) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	for i, n := range f.nodes {
		label := n.ID + "<br/>" + n.what()
		if n.ForEach != nil {
			label += "<br/>for each of " + n.ForEach.Items
		}
		left, right := n.outline(f)
		fmt.Fprintf(&b, "  n%d%s\"%s\"%s\n", i, left, mermaidText(label), right)
	}
	for i, n := range f.nodes {
		for e, next := range n.edges {
			arrow := "-->"
			if when := n.Next[e].When; when != "" {
				arrow = `-->|"` + mermaidText(when) + `"|`
			}
			fmt.Fprintf(&b, "  n%d %s n%d\n", i, arrow, next.to)
		}
		if n.spare >= 0 {
			fmt.Fprintf(&b, "  n%d -.->|\"on error\"| n%d\n", i, n.spare)
		}
		if n.undo >= 0 {
			fmt.Fprintf(&b, "  n%d -.->|\"undo\"| n%d\n", i, n.undo)
		}
	}
	return b.String()
}

// what says what a node does.
func (n *node) what() string {
	switch {
	case n.Tool != "":
		return n.Tool
	case n.nested != nil:
		return "flow " + n.nested.name
	case n.Ask != nil:
		return "asks"
	}
	return "function"
}

// outline is the form of a node: round at both ends of the flow.
func (n *node) outline(f *Flow) (left, right string) {
	switch {
	case n.ID == f.def.Entry || n.ID == f.def.Exit:
		return "([", "])"
	case n.Ask != nil:
		return "{{", "}}"
	case n.nested != nil:
		return "[[", "]]"
	}
	return "[", "]"
}

// mermaidText writes what Mermaid would read as its own as entities.
func mermaidText(s string) string {
	return strings.NewReplacer("&", "&amp;", `"`, "&quot;", "#", "&num;", "<br/>", "<br/>", "<", "&lt;", ">", "&gt;", "\n", " ").Replace(s)
}
