package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolcrib/toolcrib/tools"
)

// corpus is a catalog of the tools of many servers, and what each is called in the labels of queries.
type corpus struct {
	cat   tools.LiveCatalog
	label map[string]string // canonical name → label
}

type listing struct {
	Tools []struct {
		Name        string          `json:"name"`
		Title       string          `json:"title"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"inputSchema"`
		Annotations struct {
			Title string `json:"title"`
		} `json:"annotations"`
	} `json:"tools"`
}

func readCorpus(dir string) (*corpus, error) {
	files, err := filepath.Glob(filepath.Join(dir, "tools-list", "*.json"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no tools-list/*.json in %s", dir)
	}
	c := &corpus{cat: tools.NewCatalog().(tools.LiveCatalog), label: map[string]string{}}
	for _, file := range files {
		if err := c.server(file); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return c, nil
}

// server registers the tools of one file.
func (c *corpus) server(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var l listing
	if err := json.Unmarshal(data, &l); err != nil {
		return err
	}
	server := strings.TrimSuffix(filepath.Base(file), ".json")
	list := make([]tools.ToolDescriptor, len(l.Tools))
	for i, t := range l.Tools {
		title := t.Title
		if title == "" {
			title = t.Annotations.Title
		}
		list[i] = tools.ToolDescriptor{Tool: tools.Tool{
			Name: tools.CanonicalName(server+"_", t.Name), SourceName: t.Name, Namespace: server, Title: title,
			Description: t.Description, ArgsSchema: t.InputSchema, Transport: tools.TransportMCP,
		}, Invoke: refuse}
		c.label[list[i].Tool.Name] = server + "_" + t.Name
	}
	changes := c.cat.SwapSource(tools.ToolSourceID("mcp:"+server), list)
	for _, r := range changes.Refused {
		fmt.Fprintf(os.Stderr, "eval: %s: %v\n", r.Name, r.Err)
	}
	return nil
}

func refuse(context.Context, json.RawMessage) (tools.ToolResult, error) {
	return tools.ToolResult{}, tools.ErrToolNotFound
}

func (c *corpus) visible() *tools.VisibleSet {
	return c.cat.Snapshot().Visible(tools.FilterFrom(context.Background()))
}

func (c *corpus) labels(names []string) []string {
	labels := make([]string, len(names))
	for i, name := range names {
		labels[i] = c.label[name]
	}
	return labels
}

// query is one line of a file of queries.
type query struct {
	Text string   `json:"q"`
	Want []string `json:"want"`
	Kind string   `json:"kind"`
}

func readQueries(path string) ([]query, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []query
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if len(strings.TrimSpace(lines.Text())) == 0 {
			continue
		}
		var q query
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", path, len(out)+1, err)
		}
		out = append(out, q)
	}
	return out, nil
}
