// Command replay is an MCP server on stdio that answers with lists dumped from another server, each entry
// as it was sent: odd names, odd schemas, unknown fields and large numbers included. It speaks plain
// JSON-RPC, so no library stands between the dump and its reader.
//
//	replay [-page N] FILE
//
// FILE is a JSON object with the members tools, prompts, resources and resourceTemplates, each an array,
// and capabilities, serverInfo, protocolVersion and instructions as the server gave them at initialization.
// A called tool answers with its own name and the arguments as they came.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("replay: ")
	page := flag.Int("page", 0, "list `N` entries at a time, 0 for all at once")
	flag.Parse()
	if flag.NArg() != 1 {
		log.Fatal("usage: replay [-page N] FILE")
	}
	dump, err := readDump(flag.Arg(0))
	if err != nil {
		log.Fatal(err)
	}
	server := &server{dump: dump, page: *page, out: os.Stdout}
	if err := server.serve(os.Stdin); err != nil {
		log.Fatal(err)
	}
}

// dump is what another server answered.
type dump struct {
	ServerInfo        json.RawMessage   `json:"serverInfo"`
	ProtocolVersion   string            `json:"protocolVersion"`
	Capabilities      json.RawMessage   `json:"capabilities"`
	Instructions      string            `json:"instructions"`
	Tools             []json.RawMessage `json:"tools"`
	Prompts           []json.RawMessage `json:"prompts"`
	Resources         []json.RawMessage `json:"resources"`
	ResourceTemplates []json.RawMessage `json:"resourceTemplates"`
}

func readDump(path string) (*dump, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	d := &dump{
		ServerInfo:      json.RawMessage(`{"name":"replay","version":"1"}`),
		ProtocolVersion: "2025-11-25",
		Capabilities:    json.RawMessage(`{"tools":{}}`),
	}
	if err := json.Unmarshal(text, d); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return d, nil
}

type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

type response struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

const (
	methodNotFound = -32601
	invalidParams  = -32602
)

type server struct {
	dump *dump
	page int
	out  io.Writer
}

// serve answers one request a line until the input ends.
func (s *server) serve(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 1 {
			if err := s.answer(line); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (s *server) answer(line []byte) error {
	var req request
	if err := json.Unmarshal(line, &req); err != nil {
		return fmt.Errorf("not JSON-RPC: %w", err)
	}
	if req.ID == nil {
		return nil // a notification
	}
	resp := response{Version: "2.0", ID: req.ID}
	resp.Result, resp.Error = s.handle(req)
	encoder := json.NewEncoder(s.out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(resp)
}

func (s *server) handle(req request) (any, *rpcError) {
	switch req.Method {
	case "initialize":
		return s.initialize(), nil
	case "ping":
		return struct{}{}, nil
	case "tools/list":
		return s.list("tools", s.dump.Tools, req.Params)
	case "prompts/list":
		return s.list("prompts", s.dump.Prompts, req.Params)
	case "resources/list":
		return s.list("resources", s.dump.Resources, req.Params)
	case "resources/templates/list":
		return s.list("resourceTemplates", s.dump.ResourceTemplates, req.Params)
	case "tools/call":
		return s.call(req.Params)
	default:
		return nil, &rpcError{Code: methodNotFound, Message: "method not found: " + req.Method}
	}
}

func (s *server) initialize() any {
	result := map[string]any{
		"protocolVersion": s.dump.ProtocolVersion,
		"capabilities":    s.dump.Capabilities,
		"serverInfo":      s.dump.ServerInfo,
	}
	if s.dump.Instructions != "" {
		result["instructions"] = s.dump.Instructions
	}
	return result
}

// list answers one page. Its cursor is the index of the page's first entry.
func (s *server) list(member string, entries []json.RawMessage, params json.RawMessage) (any, *rpcError) {
	first, err := cursor(params, len(entries))
	if err != nil {
		return nil, &rpcError{Code: invalidParams, Message: err.Error()}
	}
	end := len(entries)
	if s.page > 0 {
		end = min(first+s.page, end)
	}
	page := append([]json.RawMessage{}, entries[first:end]...)
	result := map[string]any{member: page}
	if end < len(entries) {
		result["nextCursor"] = strconv.Itoa(end)
	}
	return result, nil
}

func cursor(params json.RawMessage, limit int) (int, error) {
	var p struct{ Cursor string }
	if len(params) > 0 {
		if err := json.Unmarshal(params, &p); err != nil {
			return 0, err
		}
	}
	if p.Cursor == "" {
		return 0, nil
	}
	first, err := strconv.Atoi(p.Cursor)
	if err != nil || first < 0 || first > limit {
		return 0, fmt.Errorf("unknown cursor %q", p.Cursor)
	}
	return first, nil
}

// call answers with what was called: the name in one text block, the arguments in another.
func (s *server) call(params json.RawMessage) (any, *rpcError) {
	var p struct {
		Name      string
		Arguments json.RawMessage
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, &rpcError{Code: invalidParams, Message: err.Error()}
	}
	for _, tool := range s.dump.Tools {
		var known struct{ Name string }
		if json.Unmarshal(tool, &known) == nil && known.Name == p.Name {
			return map[string]any{"content": []any{textBlock(p.Name), textBlock(string(p.Arguments))}}, nil
		}
	}
	return nil, &rpcError{Code: invalidParams, Message: "unknown tool: " + p.Name}
}

func textBlock(text string) map[string]string {
	return map[string]string{"type": "text", "text": text}
}
