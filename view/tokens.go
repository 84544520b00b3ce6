package view

import "github.com/toolcrib/toolcrib/tools"

// Tokens estimates how many tokens of a model's context the declaration of a
// tool takes, from the sizes of its parts alone. Over the lists of public
// servers and APIs its sum is within a few per cent of what the o200k vocabulary
// counts.
func Tokens(t *tools.Tool) int {
	text := len(t.Name) + len(t.Description) + len(t.SafetyNotes)
	return declarationTokens + text/textBytes + 2*len(t.ArgsSchema)/schemaHalfBytes
}

const (
	// declarationTokens is what stands around the parts.
	declarationTokens = 8
	// textBytes is how many bytes of text are a token, and schemaHalfBytes how
	// many of a schema are two.
	textBytes       = 5
	schemaHalfBytes = 9
)
