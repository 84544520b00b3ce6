package mcpserver

import (
	"encoding/json"
	"strings"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
)

// callParams are the parameters of a request that runs something.
type callParams struct {
	name      string
	arguments json.RawMessage
	meta      json.RawMessage
	key       string
	// extra is an object with the members that are not known here, or nil. They
	// are the source's to understand.
	extra json.RawMessage
	// state and responses are those of a request that is made again with what
	// was asked before.
	state     string
	responses json.RawMessage
}

// A paramReader reads the params of one request.
type paramReader struct {
	r *mcpwire.Request
	callParams
	known []string        // the members that are read here, beside the common ones
	seen  map[string]bool // members that are not known here
}

func (p *paramReader) refuse(reason string) error {
	return mcpwire.Errorf(mcpwire.CodeInvalidParams, "%s: %s", p.r.Method, reason)
}

// common takes the members that every such request may have.
func (p *paramReader) common(it *rawjson.Iter) error {
	switch v := it.Value(); {
	case it.KeyIs("_meta"):
		p.meta = objectOrNil(v)
	case it.KeyIs("requestState"):
		p.state, _ = rawjson.Unquote(v)
	case it.KeyIs("inputResponses"):
		p.responses = objectOrNil(v)
	default:
		return p.keep(it)
	}
	return nil
}

// keep keeps a member that is not known here. One that a careless peer takes
// for a known member, or that is given twice, would be read there as nobody
// has checked it here.
func (p *paramReader) keep(it *rawjson.Iter) error {
	key := it.Key()
	for _, known := range append([]string{"_meta", "requestState", "inputResponses"}, p.known...) {
		if strings.EqualFold(key, known) {
			return p.refuse(takenFor(key, known))
		}
	}
	if p.seen[key] {
		return p.refuse(quoted(key) + " is given twice")
	}
	if p.seen == nil {
		p.seen, p.extra = map[string]bool{}, json.RawMessage("{}")
	}
	p.seen[key] = true
	out := p.extra[:len(p.extra)-1]
	if len(out) > 1 {
		out = append(out, ',')
	}
	out = append(append(out, it.RawKey()...), ':')
	p.extra = append(append(out, it.Value()...), '}')
	return nil
}

func takenFor(key, known string) string {
	return quoted(key) + " could be taken for " + quoted(known)
}

func quoted(key string) string { return string(rawjson.Quote(shorten(key, 128))) }

// checkMembers refuses an object that has a member twice which is read here, or
// one that could be taken for it.
func checkMembers(r *mcpwire.Request, obj json.RawMessage, read ...string) error {
	seen := map[string]bool{}
	for it := rawjson.Object(obj); it.Next(); {
		key := it.Key()
		for _, name := range read {
			switch {
			case key == name && seen[name]:
				return mcpwire.Errorf(mcpwire.CodeInvalidParams, "%s: %s is given twice", r.Method, quoted(key))
			case key == name:
				seen[name] = true
			case strings.EqualFold(key, name):
				return mcpwire.Errorf(mcpwire.CodeInvalidParams, "%s: %s", r.Method, takenFor(key, name))
			}
		}
	}
	return nil
}

// readCall reads the parameters of a request that has a name and arguments. A
// member that is given twice would be read differently by different peers, so
// it is refused; the door refuses the same inside of the arguments.
func readCall(r *mcpwire.Request) (callParams, error) {
	p := paramReader{r: r, known: []string{"name", "arguments"}}
	named := false
	it := rawjson.Object(r.Params)
	for it.Next() {
		v := it.Value()
		switch {
		case it.KeyIs("name"):
			if named {
				return p.callParams, p.refuse(`"name" is given twice`)
			}
			if p.name, named = rawjson.Unquote(v); !named {
				return p.callParams, p.refuse(`"name" must be a string`)
			}
		case it.KeyIs("arguments"):
			if p.arguments != nil {
				return p.callParams, p.refuse(`"arguments" is given twice`)
			}
			if k := rawjson.KindOf(v); k != rawjson.KindObject && k != rawjson.KindNull {
				return p.callParams, p.refuse(`"arguments" must be an object`)
			}
			p.arguments = v
		default:
			if err := p.common(&it); err != nil {
				return p.callParams, err
			}
		}
	}
	if !named {
		return p.callParams, p.refuse(`"name" is missing`)
	}
	key, _ := rawjson.Get(p.meta, metaIdempotencyKey)
	p.key, _ = rawjson.Unquote(key)
	return p.callParams, nil
}

// readURI reads the params of a request about a resource.
func readURI(r *mcpwire.Request) (callParams, error) {
	p := paramReader{r: r, known: []string{"uri"}}
	ok := false
	it := rawjson.Object(r.Params)
	for it.Next() {
		if it.KeyIs("uri") {
			p.name, ok = rawjson.Unquote(it.Value())
			continue
		}
		if err := p.common(&it); err != nil {
			return p.callParams, err
		}
	}
	if !ok {
		return p.callParams, p.refuse(`"uri" must be a string`)
	}
	return p.callParams, nil
}

func objectOrNil(v json.RawMessage) json.RawMessage {
	if rawjson.KindOf(v) != rawjson.KindObject {
		return nil
	}
	return v
}
