package view

import "github.com/toolcrib/toolcrib/tools"

// Tokens estimates how many tokens of a model's context the declaration of a
// tool takes, from the sizes of its parts alone.
func Tokens(t *tools.Tool) int {
	return declarationTokens + (len(t.Name)+len(t.Description)+len(t.SafetyNotes)+len(t.ArgsSchema))/bytesPerToken
}

const (
	bytesPerToken = 4
	// declarationTokens is what stands around the parts.
	declarationTokens = 12
)
