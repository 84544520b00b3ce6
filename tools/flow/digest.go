package flow

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// digest identifies what a run of the definition does, apart from what its Go
// functions are.
func (d *Definition) digest() (string, error) {
	enc, err := json.Marshal(d.outline())
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(enc)
	return hex.EncodeToString(sum[:]), nil
}

// outline is what of a definition decides what a run does. Limits, waits and texts
// for people may change while a run is interrupted.
func (d *Definition) outline() map[string]any {
	nodes := make([]any, len(d.Nodes))
	for i := range d.Nodes {
		nodes[i] = d.Nodes[i].outline()
	}
	return map[string]any{"name": d.Name, "inputs": d.Inputs, "output": d.Output, "entry": d.Entry, "exit": d.Exit, "nodes": nodes}
}

func (n *Node) outline() map[string]any {
	out := map[string]any{"id": n.ID, "tool": n.Tool, "func": n.Func != nil, "inputs": n.Inputs, "next": n.Next, "join": n.Join,
		"on_error": n.OnError, "undo": n.Undo}
	if n.Flow != nil {
		out["flow"] = n.Flow.outline()
	}
	if n.Ask != nil {
		out["ask"] = n.Ask
	}
	if n.ForEach != nil {
		out["items"] = n.ForEach.Items
	}
	return out
}
