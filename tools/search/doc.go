// Package search finds tools by what they do.
//
// An [Index] ranks the tools of a [tools.VisibleSet] for a query in plain words. It splits names at dots,
// dashes, underscores and case, stems, weighs name, description, tags and parameters, repairs misspelt words,
// and knows which words of the trade stand for one another. It is a [tools.ToolSearchCache], so that a catalog
// can use it as it is:
//
//	cat := tools.NewCatalog(tools.WithSearchCache(search.New(nil)))
//
// Everything that an answer says, its hits, scores, counts and repairs, follows from the visible set that was
// searched and from a fixed table of words. Nothing that the caller may not see has a part in it. The same set
// and query always give the same answer.
package search
