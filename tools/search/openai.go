package search

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// OpenAIEmbedder asks an endpoint that speaks the embeddings protocol of OpenAI: POST {BaseURL}/embeddings.
type OpenAIEmbedder struct {
	// BaseURL is that of the API, such as https://api.openai.com/v1 or http://127.0.0.1:11434/v1.
	BaseURL string
	// Name is the model's, such as text-embedding-3-small.
	Name string
	// Dimensions asks for shorter vectors, where the model can. Zero leaves it to the model.
	Dimensions int
	// Client sends the requests; its transport adds the credentials. Nil is http.DefaultClient.
	Client *http.Client
}

var _ Embedder = (*OpenAIEmbedder)(nil)

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 64 << 20

// Model implements [Embedder].
func (e *OpenAIEmbedder) Model() string {
	if e.Dimensions > 0 {
		return fmt.Sprintf("%s/%d", e.Name, e.Dimensions)
	}
	return e.Name
}

type embeddingsRequest struct {
	Model      string   `json:"model"`
	Input      []string `json:"input"`
	Format     string   `json:"encoding_format"`
	Dimensions int      `json:"dimensions,omitempty"`
}

type embeddingsAnswer struct {
	Data []struct {
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	} `json:"data"`
}

// Embed implements [Embedder]. An error names the status that the endpoint answered, and nothing of its body.
func (e *OpenAIEmbedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	body, err := json.Marshal(embeddingsRequest{e.Name, texts, "float", e.Dimensions})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(e.BaseURL, "/")+"/embeddings", bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("search: the base URL of the embeddings endpoint is not a URL")
	}
	req.Header.Set("Content-Type", "application/json")
	client := e.Client
	if client == nil {
		client = http.DefaultClient
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("search: embeddings endpoint: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("search: the embeddings endpoint answered %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	return readEmbeddings(resp.Body, len(texts))
}

// readEmbeddings puts the vectors of an answer in the order of the texts.
func readEmbeddings(body io.Reader, n int) ([][]float32, error) {
	var answer embeddingsAnswer
	if err := json.NewDecoder(io.LimitReader(body, maxAnswer)).Decode(&answer); err != nil {
		return nil, fmt.Errorf("search: the answer of the embeddings endpoint is not what it should be: %w", err)
	}
	out := make([][]float32, n)
	for _, d := range answer.Data {
		if d.Index < 0 || d.Index >= n || len(d.Embedding) == 0 {
			return nil, fmt.Errorf("search: the embeddings endpoint answered with a vector for text %d of %d", d.Index, n)
		}
		out[d.Index] = d.Embedding
	}
	for i, v := range out {
		if len(v) == 0 || len(v) != len(out[0]) {
			return nil, fmt.Errorf("search: the embeddings endpoint answered with no usable vector for text %d of %d", i, n)
		}
	}
	return out, nil
}
