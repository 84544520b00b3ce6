package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// maxArguments bounds the arguments of a call, as a server does.
const maxArguments = api.DefaultMaxBodyBytes

// readArguments returns the JSON object that a word of the command line stands
// for: itself, @FILE, or - for in. Its bytes are not changed.
func readArguments(word string, in io.Reader) (json.RawMessage, error) {
	name, raw, err := fetchArguments(word, in)
	if err != nil {
		return nil, err
	}
	if len(raw) > maxArguments {
		return nil, invalidArguments("%s: larger than %d bytes", name, maxArguments)
	}
	if err := rawjson.Check(raw, rawjson.Options{}); err != nil {
		return nil, placed(name, raw, err)
	}
	if kind := rawjson.KindOf(raw); kind != rawjson.KindObject && kind != rawjson.KindNull {
		return nil, invalidArguments("%s: expected a JSON object, found %s", name, kind)
	}
	return rawjson.Trim(raw), nil
}

// fetchArguments reads up to one byte more than maxArguments.
func fetchArguments(word string, in io.Reader) (name string, raw []byte, err error) {
	path, isFile := strings.CutPrefix(word, "@")
	switch {
	case word == "-":
		name = "stdin"
		raw, err = io.ReadAll(io.LimitReader(in, maxArguments+1))
	case isFile:
		name = path
		raw, err = readFile(path)
	default:
		return "arguments", []byte(word), nil
	}
	if err != nil {
		return "", nil, usageError{fmt.Errorf("cannot read the arguments: %w", err)}
	}
	return name, raw, nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxArguments+1))
}

// placed says in which line and column of the arguments the fault is.
func placed(name string, raw []byte, err error) error {
	offset, what := 0, err.Error()
	if syntax, ok := errors.AsType[*rawjson.SyntaxError](err); ok {
		offset, what = syntax.Offset, "malformed JSON: "+syntax.Reason
	}
	if twice, ok := errors.AsType[*rawjson.DuplicateKeyError](err); ok {
		offset, what = twice.Offset, "an object names this key twice"
	}
	before := raw[:min(offset, len(raw))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return invalidArguments("%s:%d:%d: %s", name, line, column, what)
}

func invalidArguments(format string, args ...any) error {
	return &api.Error{Code: api.CodeInvalidArguments, Message: fmt.Sprintf(format, args...)}
}
