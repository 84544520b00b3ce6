package adapter

import (
	"encoding/json"
	"errors"

	"github.com/toolcrib/toolcrib/adapter/subset"
	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// A wire writes and reads one provider's JSON.
type wire interface {
	// compile returns the form of a schema.
	compile(schema json.RawMessage, p *subset.Profile) (*subset.Form, error)
	// describe returns the description of a declaration.
	describe(d *Declaration) string
	// declare returns the provider's tool object.
	declare(d *Declaration) json.RawMessage
	// list returns the array of tool objects.
	list(d *Declarations) json.RawMessage
	// request returns the members of a request.
	request(d *Declarations) json.RawMessage
	// calls returns the calls of a well-formed response.
	calls(response []byte) ([]rawCall, error)
	// reply returns the messages of a well-formed response.
	reply(response []byte) ([]json.RawMessage, error)
	// results returns the messages that carry answers.
	results(answers []rendered) []json.RawMessage
	// assembler returns what puts a stream together.
	assembler() assembler
}

var errNoMessage = errors.New("it holds no message of the model")

// base is what most providers share.
type base struct{}

func (base) compile(schema json.RawMessage, p *subset.Profile) (*subset.Form, error) {
	return subset.Compile(schema, p)
}

func (base) describe(d *Declaration) string { return proseWithExamples(d) }

func (base) list(d *Declarations) json.RawMessage {
	list := make([]json.RawMessage, len(d.Tools))
	for i := range d.Tools {
		list[i] = d.Tools[i].JSON
	}
	return encode(list)
}

// encode encodes what cannot fail to encode, without escapes for HTML.
func encode(v any) json.RawMessage {
	enc, err := json.Marshal(v)
	if err != nil {
		panic("adapter: " + err.Error()) // strings, maps and raw JSON that was checked
	}
	return rawjson.UnescapeHTML(enc)
}

// get returns a member below an object, or nil.
func get(obj []byte, path ...string) []byte {
	v, _ := rawjson.Get(obj, path...)
	return v
}

// text returns a string below an object, or "".
func text(obj []byte, path ...string) string {
	s, _ := rawjson.Unquote(get(obj, path...))
	return s
}

// elements returns the elements of an array; there are none in anything else.
func elements(v []byte) [][]byte {
	if rawjson.KindOf(v) != rawjson.KindArray {
		return nil
	}
	var list [][]byte
	for it := rawjson.Array(v); it.Next(); {
		list = append(list, it.Value())
	}
	return list
}

// textBlock is a block of text.
type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}
