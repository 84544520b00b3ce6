package search

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/tools"
)

// Embedder turns texts into vectors whose directions say what the texts mean.
// It must be safe for concurrent use.
type Embedder interface {
	// Embed returns a vector for each text, in their order, all of the same length.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
	// Model names what makes the vectors. Vectors of different models are never compared.
	Model() string
}

// VectorStore keeps vectors under keys of hexadecimal digits. It must be safe for concurrent use. What it has
// lost is made anew.
type VectorStore interface {
	Load(ctx context.Context, key string) (vector []float32, found bool)
	Store(ctx context.Context, key string, vector []float32) error
}

// Limits of what an Embedder is asked.
const (
	embedBatch  = 64
	embedText   = 1200 // of a tool, in bytes
	embedWait   = 2 * time.Second
	embedRun    = 10 * time.Minute
	keptQueries = 512
	keptTools   = 200000
)

// meaning ranks by an Embedder's vectors. It is safe for concurrent use.
type meaning struct {
	by     Embedder
	store  VectorStore
	logger *slog.Logger

	mu      sync.Mutex
	tools   map[string][]float32 // by digest of the definition
	queries map[string][]float32 // by tenant and text
	running map[*space]bool
	closed  bool
	ctx     context.Context
	cancel  context.CancelFunc
	wg      sync.WaitGroup
}

func newMeaning(o *Options) *meaning {
	m := &meaning{by: o.Embedder, store: o.Vectors, logger: o.Logger,
		tools: map[string][]float32{}, queries: map[string][]float32{}, running: map[*space]bool{}}
	if m.logger == nil {
		m.logger = slog.Default()
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// close ends what runs in the background.
func (m *meaning) close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.cancel()
	m.wg.Wait()
}

// Warm embeds those tools of v that have no vector yet, and returns how many it embedded. A search does the
// same in the background, and leaves tools without a vector to the rank by words. Without an Embedder there is
// nothing to do.
func (x *Index) Warm(ctx context.Context, v *tools.VisibleSet) (int, error) {
	if x.meaning == nil || v == nil {
		return 0, nil
	}
	return x.meaning.fill(ctx, x.space(visible{v}), visible{v})
}

// storeKey names the vector of a tool in a store: the same definition in the same model has the same.
func (m *meaning) storeKey(digest string) string {
	sum := sha256.Sum256([]byte(m.by.Model() + "\x00" + digest))
	return hex.EncodeToString(sum[:])
}

// fill embeds what has no vector yet, in batches.
func (m *meaning) fill(ctx context.Context, s *space, v set) (int, error) {
	done := 0
	var batch []pending
	for i, id := range s.live {
		digest := s.doc(id).digest
		if m.known(ctx, digest) {
			continue
		}
		batch = append(batch, pending{digest, embeddedText(&v.tools(i, 1)[0])})
		if len(batch) == embedBatch {
			if err := m.make(ctx, batch); err != nil {
				return done, err
			}
			done, batch = done+len(batch), nil
		}
	}
	if len(batch) > 0 {
		if err := m.make(ctx, batch); err != nil {
			return done, err
		}
		done += len(batch)
	}
	return done, nil
}

// pending is a text whose vector is to be made.
type pending struct{ digest, text string }

// embeddedText is what of a tool is embedded.
func embeddedText(t *tools.Tool) string {
	text := sourceOf(t) + " " + ownName(t) + ": " + t.Description
	if t.Title != "" {
		text = t.Title + ". " + text
	}
	if len(text) > embedText {
		text = text[:embedText]
	}
	return text
}

// known reports whether a vector is at hand, and loads it from the store if that has it.
func (m *meaning) known(ctx context.Context, digest string) bool {
	m.mu.Lock()
	_, ok := m.tools[digest]
	m.mu.Unlock()
	if ok || m.store == nil {
		return ok
	}
	v, ok := m.store.Load(ctx, m.storeKey(digest))
	if ok {
		m.keep(digest, v)
	}
	return ok
}

// keep remembers a vector at length 1.
func (m *meaning) keep(digest string, v []float32) {
	v = slices.Clone(v)
	normalise(v)
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.tools) >= keptTools {
		clear(m.tools)
	}
	m.tools[digest] = v
}

func (m *meaning) make(ctx context.Context, batch []pending) error {
	texts := make([]string, len(batch))
	for i, p := range batch {
		texts[i] = p.text
	}
	vectors, err := m.by.Embed(ctx, texts)
	if err != nil {
		return err
	}
	if len(vectors) != len(batch) {
		return fmt.Errorf("search: the embedder returned %d vectors for %d texts", len(vectors), len(batch))
	}
	for i, p := range batch {
		if m.store != nil {
			if err := m.store.Store(ctx, m.storeKey(p.digest), vectors[i]); err != nil {
				m.logger.WarnContext(ctx, "a tool's embedding could not be kept", "error", err)
			}
		}
		m.keep(p.digest, vectors[i])
	}
	return nil
}

// background embeds the tools of an index, once for each.
func (m *meaning) background(s *space, v set) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.running[s] {
		return
	}
	clear(m.running) // the older ones are of sets that are gone, or done
	m.running[s] = true
	m.wg.Go(func() {
		ctx, cancel := context.WithTimeout(m.ctx, embedRun)
		defer cancel()
		if _, err := m.fill(ctx, s, v); err != nil && !errors.Is(err, context.Canceled) {
			m.logger.WarnContext(ctx, "tools could not be embedded; they are found by words alone", "error", err)
		}
	})
}

// query returns the vector of a query's text. It is kept for each tenant alone.
func (m *meaning) query(ctx context.Context, text string) ([]float32, error) {
	id, _ := identity.From(ctx)
	key := id.TenantID + "\x00" + text
	m.mu.Lock()
	v, ok := m.queries[key]
	m.mu.Unlock()
	if ok {
		return v, nil
	}
	ctx, cancel := context.WithTimeout(ctx, embedWait)
	defer cancel()
	vectors, err := m.by.Embed(ctx, []string{text})
	if err != nil {
		return nil, err
	}
	if len(vectors) != 1 {
		return nil, fmt.Errorf("search: the embedder returned %d vectors for one text", len(vectors))
	}
	v = slices.Clone(vectors[0])
	normalise(v)
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.queries) >= keptQueries {
		clear(m.queries)
	}
	m.queries[key] = v
	return v, nil
}

func normalise(v []float32) {
	sum := 0.0
	for _, f := range v {
		sum += float64(f) * float64(f)
	}
	if sum == 0 {
		return
	}
	scale := float32(1 / math.Sqrt(sum))
	for i := range v {
		v[i] *= scale
	}
}

// Both ranks are put together by the sum of the reciprocals of the places (RRF): the constant says how much
// more the first places count than later ones.
const (
	fusePlaces = 60
	fuseDepth  = 64
	likely     = 0.35 // the cosine from which a tool that shares no word with the query is more than a guess
)

// fuse puts the rank by words, which is sorted, together with that by meaning.
func (m *meaning) fuse(ctx context.Context, s *space, v set, q *Query, list []ranked) ([]ranked, string) {
	m.background(s, v)
	vec, err := m.query(ctx, q.Text)
	if err != nil {
		m.logger.DebugContext(ctx, "a query could not be embedded", "error", err)
		return list, "the rank by meaning was not available; these are the hits by words alone"
	}
	near := m.nearest(s, q, vec)
	if len(near) == 0 {
		return list, ""
	}
	best := float32(2) / (fusePlaces + 1)
	at := map[uint32]int{}
	for i := range list {
		at[list[i].id] = i
		list[i].score = 1 / float32(fusePlaces+1+i) / best
	}
	for i, n := range near {
		k, ok := at[n.id]
		if !ok {
			k = len(list)
			list = append(list, ranked{id: n.id})
		}
		list[k].score += 1 / float32(fusePlaces+1+i) / best
		if n.score >= likely {
			list[k].sure = max(list[k].sure, n.score)
		}
	}
	slices.SortFunc(list, s.better)
	return list, ""
}

// nearest returns the documents closest to a vector, the closest first.
func (m *meaning) nearest(s *space, q *Query, vec []float32) []ranked {
	top := heap{s: s, most: fuseDepth}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range s.live {
		d := s.doc(id)
		v := m.tools[d.digest]
		if len(v) != len(vec) || !q.keeps(d) {
			continue
		}
		if c := inner(v, vec); c > 0 {
			top.offer(ranked{id: id, score: c})
		}
	}
	slices.SortFunc(top.list, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(s.doc(a.id).name, s.doc(b.id).name))
	})
	return top.list
}

func inner(a, b []float32) float32 {
	sum := float32(0)
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}
