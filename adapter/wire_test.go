package adapter_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/toolcrib/toolcrib/adapter"
	"github.com/toolcrib/toolcrib/tools"
)

var update = flag.Bool("update", false, "rewrite what the archives of testdata/wire expect")

// Each archive of testdata/wire holds what a provider sends, as it documents it:
// response.json and the events of streams. What is sent to the provider, and
// what is understood, stands beside it.
func TestWireFormats(t *testing.T) {
	files, err := filepath.Glob("testdata/wire/*.txtar")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d archives: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			archive := txtar.Parse(raw)
			exchange(t, archive, strings.TrimSuffix(filepath.Base(file), ".txtar"))
			if got := txtar.Format(archive); *update && !bytes.Equal(got, raw) {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// exchange plays an archive and compares, or with -update rewrites, what comes
// of it.
func exchange(t *testing.T, archive *txtar.Archive, name string) {
	var opts adapter.Options
	if raw := section(archive, "options.json"); raw != nil {
		if err := json.Unmarshal(raw, &opts); err != nil {
			t.Fatal(err)
		}
	}
	provider := adapter.Provider(strings.TrimSuffix(strings.TrimSuffix(name, "-strict"), "-openapi"))
	a := newAdapter(t, provider, &opts)
	d := a.Declare(wireTools(t))
	if found := violations(a, d.Request()); len(found) > 0 && !opts.NativeDeferral {
		t.Error(found)
	}
	expect(t, archive, "request.json", d.Request())
	expect(t, archive, "losses.json", marshal(t, d.Losses))

	response := section(archive, "response.json")
	calls, err := d.Calls(response)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, archive, "calls.json", marshal(t, understood(calls)))
	reply, err := d.Reply(response)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, archive, "reply.json", marshal(t, reply))
	results, err := d.Results(t.Context(), answers(calls))
	if err != nil {
		t.Fatal(err)
	}
	expect(t, archive, "results.json", marshal(t, results))

	for _, stream := range []string{"stream", "stream-cut"} {
		if events := section(archive, stream+".jsonl"); events != nil {
			expect(t, archive, stream+"-calls.json", marshal(t, understood(assembled(t, d, events))))
		}
	}
	if events := section(archive, "stream.jsonl"); events != nil {
		s := d.Stream()
		feed(t, s, events)
		expect(t, archive, "stream-response.json", s.Response())
	}
}

func section(archive *txtar.Archive, name string) []byte {
	for _, f := range archive.Files {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}

// expect compares a section with what came of it, both indented.
func expect(t *testing.T, archive *txtar.Archive, name string, got []byte) {
	t.Helper()
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, got, "", " "); err != nil {
		t.Fatalf("%s is not JSON: %v: %s", name, err, got)
	}
	pretty.WriteByte('\n')
	if *update {
		for i, f := range archive.Files {
			if f.Name == name {
				archive.Files[i].Data = pretty.Bytes()
				return
			}
		}
		archive.Files = append(archive.Files, txtar.File{Name: name, Data: pretty.Bytes()})
		return
	}
	if want := section(archive, name); !bytes.Equal(want, pretty.Bytes()) {
		t.Errorf("%s is not as expected (go test -update rewrites it):\n%s\nwant:\n%s", name, pretty.Bytes(), want)
	}
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func wireTools(t testing.TB) []tools.Tool {
	t.Helper()
	var list []tools.Tool
	read(t, "testdata/wire/tools.json", &list)
	return list
}

// understood returns what is understood of calls.
func understood(calls []adapter.Call) any {
	out := []map[string]any{}
	for _, c := range calls {
		m := map[string]any{"id": c.ID, "index": c.Index, "tool": c.Tool}
		if c.Args != nil {
			m["args"] = c.Args
		}
		if c.Err != nil {
			m["error"] = c.Err.Error()
		}
		out = append(out, m)
	}
	return out
}

// answers returns one answer of a different kind for each call.
func answers(calls []adapter.Call) []adapter.Answer {
	pixel := []byte("\x89PNG\r\n\x1a\n")
	kinds := []tools.ToolResult{
		{Value: map[string]any{"temperature_c": 21.3, "big": int64(9007199254740993)}},
		{Content: []tools.Content{tools.TextContent("Here it is <b>&c."), tools.ImageContent(pixel, "image/png"),
			tools.ResourceLink("file:///a.txt", "a.txt", "text/plain"), tools.AudioContent([]byte("RIFF"), "audio/wav")}},
		{IsError: true, Content: []tools.Content{tools.TextContent("the clock is broken")}},
	}
	var list []adapter.Answer
	for i, c := range calls {
		a := adapter.Answer{Call: c, Err: c.Err}
		if c.Err == nil {
			a.Result = kinds[i%len(kinds)]
		}
		list = append(list, a)
	}
	return list
}

func feed(t *testing.T, s *adapter.Stream, events []byte) []adapter.Call {
	t.Helper()
	var calls []adapter.Call
	for line := range bytes.Lines(events) {
		whole, err := s.Add(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		calls = append(calls, whole...)
	}
	return calls
}

func assembled(t *testing.T, d *adapter.Declarations, events []byte) []adapter.Call {
	t.Helper()
	s := d.Stream()
	return append(feed(t, s, events), s.Close()...)
}

// What a stream comes to is what the same response gives when it is not
// streamed.
func TestStreamsEqualResponses(t *testing.T) {
	files, _ := filepath.Glob("testdata/wire/*.txtar")
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		events := section(archive, "stream.jsonl")
		if events == nil {
			continue
		}
		d := newAdapter(t, adapter.Provider(strings.TrimSuffix(filepath.Base(file), ".txtar")), nil).Declare(wireTools(t))
		s := d.Stream()
		streamed := append(feed(t, s, events), s.Close()...)
		again, err := d.Calls(s.Response())
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if got, want := marshal(t, understood(again)), marshal(t, understood(streamed)); !bytes.Equal(got, want) {
			t.Errorf("%s: %s\nis not\n%s", file, got, want)
		}
		if len(streamed) == 0 {
			t.Errorf("%s: the stream holds no call", file)
		}
	}
}

// A model that was stopped while it wrote a call did not mean the call, whatever
// stands in the response, and however the response came.
func TestCallsThatWereCutOffAreNotRun(t *testing.T) {
	for provider, test := range map[adapter.Provider]struct{ response, events string }{
		adapter.OpenAI: {
			`{"choices":[{"finish_reason":"length","message":{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"t","arguments":"{}"}}]}}]}`,
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"t","arguments":""}}]}}]}`,
		},
		adapter.OpenAIResponses: {
			`{"status":"incomplete","output":[{"type":"function_call","status":"incomplete","call_id":"c","name":"t","arguments":"{}"}]}`,
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"c","name":"t","arguments":"","status":"in_progress"}}`,
		},
		adapter.Anthropic: {
			`{"stop_reason":"max_tokens","content":[{"type":"text","text":"x"},{"type":"tool_use","id":"c","name":"t","input":{}}]}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"t","input":{}}}`,
		},
		adapter.Gemini: {
			`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"t","willContinue":true}}]}}]}`,
			`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"t","willContinue":true}}]}}]}`,
		},
		adapter.Bedrock: {
			`{"stopReason":"max_tokens","output":{"message":{"content":[{"toolUse":{"toolUseId":"c","name":"t","input":{}}}]}}}`,
			`{"contentBlockStart":{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"c","name":"t"}}}}`,
		},
	} {
		d := newAdapter(t, provider, nil).Declare(named("t"))
		whole, err := d.Calls(json.RawMessage(test.response))
		if err != nil {
			t.Fatal(provider, err)
		}
		s := d.Stream()
		streamed := append(feed(t, s, []byte(test.events)), s.Close()...)
		again, err := d.Calls(s.Response())
		if err != nil {
			t.Fatal(provider, err)
		}
		for kind, calls := range map[string][]adapter.Call{"whole": whole, "streamed": streamed, "put together": again} {
			if len(calls) != 1 || !errors.Is(calls[0].Err, tools.ErrToolInvalidArgs) || calls[0].Args != nil {
				t.Errorf("%s, %s: %+v", provider, kind, calls)
			}
		}
		if _, err := d.Reply(s.Response()); err != nil {
			t.Errorf("%s: %v", provider, err)
		}
	}
}

// Of a message that was cut off, the calls before the last are whole.
func TestOnlyTheLastCallIsCutOff(t *testing.T) {
	d := adapter.NewAnthropicAdapter().Declare(named("t"))
	s := d.Stream()
	calls := feed(t, s, []byte(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"t","input":{}}}
{"type":"content_block_stop","index":0}
{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"b","name":"t","input":{}}}
{"type":"content_block_stop","index":1}
{"type":"message_delta","delta":{"stop_reason":"max_tokens"}}
{"type":"message_stop"}`))
	again, err := d.Calls(s.Response())
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range [][]adapter.Call{calls, again} {
		if len(list) != 2 || list[0].Err != nil || list[1].Err == nil {
			t.Errorf("%+v", list)
		}
	}
}
