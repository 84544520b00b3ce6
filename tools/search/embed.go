package search

import "context"

// Embedder turns texts into vectors whose directions say what the texts mean.
type Embedder interface {
	// Embed returns a vector for each text, all of the same length.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
	// Model names what makes the vectors. Vectors of different models are never compared.
	Model() string
}

// VectorStore keeps vectors under keys.
type VectorStore interface {
	Load(ctx context.Context, key string) ([]float32, bool)
	Store(ctx context.Context, key string, vector []float32)
}

type meaning struct{}

func newMeaning(*Options) *meaning { return &meaning{} }

func (m *meaning) fuse(_ context.Context, _ *space, _ *Query, list []ranked) ([]ranked, string) {
	return list, ""
}
