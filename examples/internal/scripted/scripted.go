// Package scripted serves the APIs of model providers with a model that follows a
// script. It speaks their real wire formats, and refuses what they would refuse of
// how tools are declared, called and answered, so that an agent which gets along
// with it gets along with them.
package scripted

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
)

// Step is what the model does next, in view of what it was sent.
type Step func(seen Seen) Reply

// Seen is what a request holds.
type Seen struct {
	// Tools are the names of the declared tools, as the provider is shown them.
	Tools []string
	// Body is the whole request.
	Body string
}

// Has reports whether a tool is declared, by its canonical name.
func (s Seen) Has(tool string) bool { return s.name(tool) != "" }

// Find returns what the first group of a pattern matches last in the request.
func (s Seen) Find(pattern string) string {
	all := regexp.MustCompile(pattern).FindAllStringSubmatch(s.Body, -1)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1][1]
}

// name returns the declared name that a canonical one is shown as: it begins with
// the canonical one up to the characters that a provider does not take.
func (s Seen) name(tool string) string {
	start := strings.FieldsFunc(tool, func(r rune) bool { return r == '.' || r == '-' })
	for _, name := range s.Tools {
		rest, ok := name, true
		for _, part := range start {
			if rest, ok = strings.CutPrefix(strings.TrimLeft(rest, "._-"), part); !ok {
				break
			}
		}
		if ok && (rest == "" || rest[0] == '_' || rest[0] == '-') {
			return name
		}
	}
	return ""
}

// Reply is the model's answer: calls of tools, or a text that ends the matter.
type Reply struct {
	Calls []Call
	Text  string
}

// Call is a call of a tool by its canonical name. Args are a JSON object.
type Call struct{ Tool, Args string }

// wire is the form of one provider.
type wire interface {
	// allows says what is wrong with a request apart from its body.
	allows(r *http.Request) error
	// read returns the declared tools, and says what is wrong with a body.
	read(body []byte) (names []string, err error)
	// write returns a response. Names are declared ones.
	write(text string, calls []Call) any
	// failure returns the body of an error.
	failure(message string) any
}

// Server is a provider whose model follows a script.
type Server struct {
	*httptest.Server
	wire  wire
	steps []Step

	mu       sync.Mutex // guards the fields below
	next     int
	problems []string
}

// OpenAI serves Chat Completions below its URL and "/v1".
func OpenAI(steps ...Step) *Server { return serve(&openAI{}, steps) }

// Anthropic serves the Messages API below its URL.
func Anthropic(steps ...Step) *Server { return serve(&anthropic{}, steps) }

// Gemini serves generateContent below its URL and "/v1beta".
func Gemini(steps ...Step) *Server { return serve(&gemini{}, steps) }

func serve(w wire, steps []Step) *Server {
	s := &Server{wire: w, steps: steps}
	s.Server = httptest.NewServer(s)
	return s
}

// Key is what requests must carry as their key.
const Key = "key-of-the-script"

// Err says what was wrong with requests, or that the script did not come to its
// end.
func (s *Server) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.problems != nil {
		return fmt.Errorf("the provider refused: %s", strings.Join(s.problems, "; "))
	}
	if s.next < len(s.steps) {
		return fmt.Errorf("%d of %d steps were taken", s.next, len(s.steps))
	}
	return nil
}

// ServeHTTP takes the next step of the script.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer, err := s.step(r, body)
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		answer = s.wire.failure(err.Error())
	}
	_ = json.NewEncoder(w).Encode(answer) // the client went away
}

func (s *Server) step(r *http.Request, body []byte) (answer any, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		if err != nil {
			s.problems = append(s.problems, err.Error())
		}
	}()
	if err := s.wire.allows(r); err != nil {
		return nil, err
	}
	names, err := s.wire.read(body)
	if err != nil {
		return nil, err
	}
	if s.next == len(s.steps) {
		return nil, fmt.Errorf("the script is over")
	}
	seen := Seen{Tools: names, Body: string(body)}
	reply := s.steps[s.next](seen)
	s.next++
	for i, c := range reply.Calls {
		if reply.Calls[i].Tool = seen.name(c.Tool); reply.Calls[i].Tool == "" {
			return nil, fmt.Errorf("the model wants to call %q, which is not declared among %q", c.Tool, names)
		}
	}
	return s.wire.write(reply.Text, reply.Calls), nil
}

// has returns an error unless a request is a POST of that path with that header.
func has(r *http.Request, path, header, value string) error {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, path) {
		return fmt.Errorf("unknown endpoint %s %s", r.Method, r.URL.Path)
	}
	if r.Header.Get(header) != value {
		return fmt.Errorf("no valid key in the header %s", header)
	}
	return nil
}

// checkNames checks names of tools against the provider's alphabet.
func checkNames(names []string, alphabet *regexp.Regexp) error {
	seen := map[string]bool{}
	for _, name := range names {
		if !alphabet.MatchString(name) || seen[name] {
			return fmt.Errorf("invalid or repeated tool name %q", name)
		}
		seen[name] = true
	}
	return nil
}
