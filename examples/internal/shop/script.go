package shop

import (
	"fmt"

	"github.com/toolcrib/toolcrib/examples/internal/scripted"
)

// Question is what the agents are asked.
const Question = "How is the weather in Lisbon and Oslo, and which open order is the largest?"

// Answer is what the scripted model says at the end.
const Answer = "Lisbon has 17.5 °C, Oslo snow at -3 °C. The largest open order is open-0804 with a total of 996 by [redacted]."

// Transcript is what an agent writes that is asked Question and has the scripted
// model.
const Transcript = `completed tool_search
completed tool_search
completed weather.get_current
completed weather.get_current
completed orders.report
denied orders.delete
completed artifact_fetch
` + Answer + "\n"

// Script is a model that answers Question: it looks for tools, calls those that it
// found at once, and reads a part of the result that was too large.
func Script() []scripted.Step {
	return []scripted.Step{look, call, read, answer}
}

func look(seen scripted.Seen) scripted.Reply {
	if seen.Has("weather.get_current") || seen.Has("orders.report") {
		return scripted.Reply{Text: "All tools were declared from the start."}
	}
	return scripted.Reply{Calls: []scripted.Call{
		{Tool: "tool_search", Args: `{"query":"current weather of a city"}`},
		{Tool: "tool_search", Args: `{"query":"list open orders"}`},
	}}
}

func call(scripted.Seen) scripted.Reply {
	return scripted.Reply{Calls: []scripted.Call{
		{Tool: "weather.get_current", Args: `{"city":"Lisbon"}`},
		{Tool: "weather.get_current", Args: `{"city":"Oslo"}`},
		{Tool: "orders.report", Args: `{"state":"open"}`},
		{Tool: "orders.delete", Args: `{"id":"open-0001"}`},
	}}
}

func read(seen scripted.Seen) scripted.Reply {
	ref := seen.Find(`(art-[A-Za-z0-9_-]+)`)
	return scripted.Reply{Calls: []scripted.Call{
		{Tool: "artifact_fetch", Args: fmt.Sprintf(`{"ref":%q,"query":".orders | max_by(.total)"}`, ref)},
	}}
}

func answer(seen scripted.Seen) scripted.Reply {
	const value = `[\\]*"%s[\\]*": ?[\\]*"?(-?[\w.\[\]-]+)`
	last := func(key string) string { return seen.Find(fmt.Sprintf(value, key)) }
	return scripted.Reply{Text: fmt.Sprintf("Lisbon has %s °C, Oslo %s at %s °C. The largest open order is %s with a total of %s by %s.",
		seen.Find(`Lisbon[\\]*",[\\]*"temperature_c[\\]*": ?([\d.]+)`), last("sky"), seen.Find(`Oslo[\\]*",[\\]*"temperature_c[\\]*": ?(-?[\d.]+)`),
		last("id"), last("total"), last("email"))}
}
