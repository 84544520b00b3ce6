// Package set makes named, filtered sets of tools and shows them in the form of
// a protocol.
//
//	ts, err := set.NewBuilder("github-tools").FromRegistry(catalog).WithNamespace("github").Build()
//	tools, warnings, errs := set.NewExposure(ts, adapter.NewMCPAdapter()).ExportWithWarnings()
//
// Filters choose among the tools of a source, all of them must agree, and a
// policy has the last word about each. A set narrows and never grants: what a
// caller may see of it is what it may see of the catalog and the set holds
// ([Toolset.For]), and calls take the catalog's road. tools.WithPart with
// [Toolset.Part] makes the set all that there is of a catalog: for lists, searches
// and calls alike.
//
// A set over a registry follows it: what the registry gains and loses, the set
// does, as its filters and its policy say.
package set
