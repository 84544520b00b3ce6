// Package adapter speaks the JSON of model providers: tool declarations out, tool
// calls in, tool results out.
//
// An [Adapter] is one provider's shape. [Adapter.Declare] compiles a list of
// tools into [Declarations], which hold what goes into a request and know the way
// back: the wire name of each tool, how the arguments that a model sends become
// arguments for the tool's own schema, and how results are written for the
// provider. What a provider cannot enforce is reported as a [Loss]; a tool that
// it has no form for is left out alone, with a reason, as a [Quarantine].
//
// Nothing here talks to a provider: bodies come in and go out as JSON, so that
// any client can carry them. The nested modules adapter/openai,
// adapter/anthropic, adapter/gemini and adapter/bedrock convert to the types of
// the published Go SDKs.
package adapter
