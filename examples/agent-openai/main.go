// Command agent-openai is an agent over OpenAI's Chat Completions, or any API that
// speaks it: OPENAI_API_KEY, OPENAI_BASE_URL and OPENAI_MODEL say which.
//
//	agent-openai 'How is the weather in Oslo?'
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strings"

	"github.com/toolcrib/toolcrib/adapter"
	"github.com/toolcrib/toolcrib/examples/internal/shop"
	"github.com/toolcrib/toolcrib/turn"
)

type agent struct{ url, key, model string }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	a := agent{url: cmp.Or(os.Getenv("OPENAI_BASE_URL"), "https://api.openai.com/v1"),
		key: os.Getenv("OPENAI_API_KEY"), model: cmp.Or(os.Getenv("OPENAI_MODEL"), "gpt-5-mini")}
	if err := a.run(ctx, cmp.Or(strings.Join(os.Args[1:], " "), shop.Question), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// maxTurns is how often the model is asked at most.
const maxTurns = 20

// run answers a question, and writes to out what is called on the way.
func (a agent) run(ctx context.Context, question string, out io.Writer) error {
	s, err := shop.Open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	ctx, run, openAI := shop.Caller(ctx), s.Runner.NewRun(turn.Usage{}), adapter.NewOpenAIAdapter()
	ask, err := json.Marshal(map[string]string{"role": "user", "content": question})
	if err != nil {
		return err
	}
	messages := []json.RawMessage{ask}
	for range maxTurns {
		t, err := run.Begin(ctx)
		if err != nil {
			return err
		}
		declared := t.Declare(openAI)
		response, err := a.complete(ctx, declared, messages)
		if err != nil {
			return err
		}
		answer, err := t.Respond(ctx, declared, response)
		if err != nil {
			return err
		}
		for _, r := range answer.Results {
			fmt.Fprintln(out, r.Status, r.Name)
		}
		if len(answer.Results) == 0 {
			return say(out, response)
		}
		messages = append(messages, answer.Messages...)
	}
	return errors.New("the model does not come to an end")
}

// complete asks the model.
func (a agent) complete(ctx context.Context, declared *adapter.Declarations, messages []json.RawMessage) (json.RawMessage, error) {
	raw, err := declared.Body(map[string]any{"model": a.model, "messages": messages})
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url+"/chat/completions", bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+a.key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if raw, err = io.ReadAll(resp.Body); err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, raw)
	}
	return raw, err
}

// say writes the text of a response.
func say(out io.Writer, response json.RawMessage) error {
	var r struct {
		Choices []struct{ Message struct{ Content string } }
	}
	if err := json.Unmarshal(response, &r); err != nil || len(r.Choices) == 0 {
		return errors.Join(errors.New("the response has no message"), err)
	}
	_, err := fmt.Fprintln(out, r.Choices[0].Message.Content)
	return err
}
