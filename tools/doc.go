// Package tools is the vocabulary of tools and the one door through which
// every call of every tool goes.
//
// A Tool describes something that can be called; a ToolDescriptor adds the way
// to run it; a ToolCatalog holds many. Drivers turn Go functions, HTTP
// endpoints, MCP servers and others into descriptors, and supply only the
// innermost step of a call. The catalog binds the rest of the road to the
// descriptor when it is registered: identity, visibility, validation, safety
// policy, approval, admission, time limits, retries, redaction and events, in
// an order that is written down in one place and that nothing configures.
//
// Identity and scopes are read from the context (package identity). A call's
// own state is a *Call, found with CallFrom.
package tools
