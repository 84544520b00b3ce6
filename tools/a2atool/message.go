package a2atool

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/toolcrib/toolcrib/tools"
)

// arguments are those of every skill's tool.
type arguments struct {
	Message   string         `json:"message"`
	Data      map[string]any `json:"data"`
	Files     []file         `json:"files"`
	ContextID string         `json:"context_id"`
}

type file struct {
	Name  string  `json:"name"`
	MIME  string  `json:"mime"`
	Bytes *string `json:"bytes"`
	URI   *string `json:"uri"`
}

// read decodes the arguments; numbers keep their digits.
func read(raw json.RawMessage) (*arguments, error) {
	var a arguments
	if len(raw) == 0 {
		return &a, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&a); err != nil {
		return nil, errors.New("the arguments are not an object with message, data, files and context_id")
	}
	return &a, nil
}

// parts are the contents of the message that the arguments make.
func (a *arguments) parts() ([]*a2a.Part, error) {
	var parts []*a2a.Part
	if a.Message != "" {
		parts = append(parts, a2a.NewTextPart(a.Message))
	}
	if a.Data != nil {
		part := a2a.NewDataPart(a.Data)
		part.MediaType = "application/json"
		parts = append(parts, part)
	}
	for i, f := range a.Files {
		part, err := f.part()
		if err != nil {
			return nil, fmt.Errorf("/files/%d: %w", i, err)
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return nil, errors.New("there is nothing to send: give message, data or files")
	}
	return parts, nil
}

func (f *file) part() (*a2a.Part, error) {
	switch {
	case (f.Bytes == nil) == (f.URI == nil):
		return nil, errors.New("expected either bytes or uri")
	case f.URI != nil:
		if u, err := url.Parse(*f.URI); err != nil || !u.IsAbs() {
			return nil, errors.New("uri: expected an absolute URI")
		}
		part := a2a.NewFileURLPart(a2a.URL(*f.URI), f.MIME)
		part.Filename = f.Name
		return part, nil
	}
	content, err := base64.StdEncoding.DecodeString(*f.Bytes)
	if err != nil {
		return nil, errors.New("bytes: expected standard base64")
	}
	return &a2a.Part{Content: a2a.Raw(content), Filename: f.Name, MediaType: f.MIME}, nil
}

// invalid is the error of a call whose arguments fit the schema and still
// cannot be sent.
func invalid(tool string, err error) error {
	return &tools.Error{Tool: tool, Code: tools.ErrToolInvalidArgs, Class: tools.ErrClassPermanent,
		Delivery: tools.NotDelivered, Message: err.Error()}
}
