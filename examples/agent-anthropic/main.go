// Command agent-anthropic is an agent over Anthropic's Messages API:
// ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL and ANTHROPIC_MODEL say which.
//
//	agent-anthropic 'How is the weather in Oslo?'
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
	a := agent{url: cmp.Or(os.Getenv("ANTHROPIC_BASE_URL"), "https://api.anthropic.com"),
		key: os.Getenv("ANTHROPIC_API_KEY"), model: cmp.Or(os.Getenv("ANTHROPIC_MODEL"), "claude-sonnet-4-5")}
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
	ctx, run, anthropic := shop.Caller(ctx), s.Runner.NewRun(turn.Usage{}), adapter.NewAnthropicAdapter()
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
		declared := t.Declare(anthropic)
		response, err := a.send(ctx, declared, messages)
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

// send asks the model.
func (a agent) send(ctx context.Context, declared *adapter.Declarations, messages []json.RawMessage) (json.RawMessage, error) {
	raw, err := declared.Body(map[string]any{"model": a.model, "messages": messages, "max_tokens": 4096})
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url+"/v1/messages", bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Api-Key", a.key)
	r.Header.Set("Anthropic-Version", "2023-06-01")
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
	var r struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(response, &r); err != nil {
		return err
	}
	for _, block := range r.Content {
		fmt.Fprint(out, block.Text)
	}
	_, err := fmt.Fprintln(out)
	return err
}
