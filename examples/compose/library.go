package main

import (
	"context"
	"fmt"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/inproc"
)

type searchArgs struct {
	Title string `json:"title"`
}

type book struct {
	ID    int    `json:"id"`
	Title string `json:"title"`
	Free  bool   `json:"free"`
}

type found struct {
	Books []book `json:"books"`
}

type lendArgs struct {
	ID int `json:"id"`
}

type lent struct {
	Due string `json:"due"`
}

type waitArgs struct {
	Title string `json:"title"`
}

type waiting struct {
	Place int `json:"place"`
}

// library is a catalog with the tools of a library.
func library() (tools.LiveCatalog, error) {
	cat, _ := tools.NewCatalog().(tools.LiveCatalog)
	search := func(_ context.Context, in searchArgs) (found, error) {
		return found{[]book{{ID: len(in.Title), Title: in.Title, Free: len(in.Title) > 4}}}, nil
	}
	lend := func(_ context.Context, in lendArgs) (lent, error) {
		return lent{Due: fmt.Sprintf("in %d days", 10+in.ID)}, nil
	}
	wait := func(context.Context, waitArgs) (waiting, error) { return waiting{Place: 3}, nil }
	for _, err := range []error{
		inproc.RegisterFunc(cat, "library.search", search, tools.WithDescription("Find books by title."), tools.WithSideEffect(tools.SideEffectRead), tools.WithTags("read")),
		inproc.RegisterFunc(cat, "library.lend", lend, tools.WithDescription("Lend a book."), tools.WithSideEffect(tools.SideEffectWrite), tools.WithTags("write")),
		inproc.RegisterFunc(cat, "library.wait", wait, tools.WithDescription("Put a reader on the list of a book that is out."), tools.WithSideEffect(tools.SideEffectWrite), tools.WithTags("write")),
	} {
		if err != nil {
			return nil, err
		}
	}
	return cat, nil
}
