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

type countArgs struct {
	Text  string `json:"text" jsonschema:"the text whose words are counted"`
	Least int    `json:"least" jsonschema:"description=letters that a word has at least,minimum=1,default=1"`
}

type countResult struct {
	Words int `json:"words"`
}

func count(_ context.Context, in countArgs) (countResult, error) {
	words := 0
	for word := range strings.FieldsSeq(in.Text) {
		if len(word) >= in.Least {
			words++
		}
	}
	return countResult{Words: words}, nil
}

func main() {
	cat := tools.NewCatalog()
	err := inproc.RegisterFunc(cat, "text.count", count,
		tools.WithDescription("Count the words of a text."),
		tools.WithSideEffect(tools.SideEffectPure))
	if err != nil {
		log.Fatal(err)
	}
	for _, args := range []string{`{"text":"to be or not to be","least":3}`, `{"txt":"to be"}`} {
		res, err := tools.Invoke(context.Background(), cat, "text.count", []byte(args))
		fmt.Println(string(res.Structured), err)
	}
}
