// Command library makes a Go function a tool and calls it.
package main

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/inproc"
)

// CountArgs are the arguments, as a model sends them.
type CountArgs struct {
	Text  string `json:"text" jsonschema:"the text whose words are counted"`
	Least int    `json:"least" jsonschema:"description=letters that a word has at least,minimum=1,default=1"`
}

// CountResult is the result, as a model reads it.
type CountResult struct {
	Words int `json:"words"`
}

func count(_ context.Context, in CountArgs) (CountResult, error) {
	words := 0
	for word := range strings.FieldsSeq(in.Text) {
		if len(word) >= in.Least {
			words++
		}
	}
	return CountResult{Words: words}, nil
}

func main() {
	cat := tools.NewCatalog()
	err := inproc.RegisterFunc(cat, "text.count", count,
		tools.WithDescription("Count the words of a text."),
		tools.WithSideEffect(tools.SideEffectPure))
	if err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	res, err := tools.Invoke(ctx, cat, "text.count", []byte(`{"text":"to be or not to be","least":3}`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(res.Structured), res.Value.(CountResult).Words)

	_, err = tools.Invoke(ctx, cat, "text.count", []byte(`{"txt":"to be"}`))
	fmt.Println(err)
}
