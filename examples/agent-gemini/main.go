// Command agent-gemini is an agent over the Gemini API: GEMINI_API_KEY,
// GEMINI_BASE_URL and GEMINI_MODEL say which.
//
//	agent-gemini 'How is the weather in Oslo?'
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
	a := agent{url: cmp.Or(os.Getenv("GEMINI_BASE_URL"), "https://generativelanguage.googleapis.com/v1beta"),
		key: os.Getenv("GEMINI_API_KEY"), model: cmp.Or(os.Getenv("GEMINI_MODEL"), "gemini-2.5-flash")}
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
	gemini, err := adapter.New(adapter.Gemini, nil)
	if err != nil {
		return err
	}
	ctx, run := shop.Caller(ctx), s.Runner.NewRun(turn.Usage{})
	ask, err := json.Marshal(map[string]any{"role": "user", "parts": []any{map[string]any{"text": question}}})
	if err != nil {
		return err
	}
	contents := []json.RawMessage{ask}
	for range maxTurns {
		t, err := run.Begin(ctx)
		if err != nil {
			return err
		}
		declared := t.Declare(gemini)
		response, err := a.generate(ctx, declared, contents)
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
		contents = append(contents, answer.Messages...)
	}
	return errors.New("the model does not come to an end")
}

// generate asks the model.
func (a agent) generate(ctx context.Context, declared *adapter.Declarations, contents []json.RawMessage) (json.RawMessage, error) {
	raw, err := declared.Body(map[string]any{"contents": contents})
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url+"/models/"+a.model+":generateContent", bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Goog-Api-Key", a.key)
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
	type content struct{ Parts []struct{ Text string } }
	var r struct{ Candidates []struct{ Content content } }
	if err := json.Unmarshal(response, &r); err != nil || len(r.Candidates) == 0 {
		return errors.Join(errors.New("the response has no candidate"), err)
	}
	for _, part := range r.Candidates[0].Content.Parts {
		fmt.Fprint(out, part.Text)
	}
	_, err := fmt.Fprintln(out)
	return err
}
