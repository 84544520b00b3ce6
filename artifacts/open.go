package artifacts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"sync"
	"time"

	"gocloud.dev/blob"

	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/store"
	"github.com/toolcrib/toolcrib/tools"
)

// Quota bounds what is kept at once. Zero means the default, and a negative
// number that there is no bound.
type Quota struct {
	// Bytes of content, including what is being stored.
	Bytes int64
	// Count of artifacts.
	Count int64
}

// Options adjusts a Store. Nil means the defaults.
type Options struct {
	// TTL is how long an artifact is kept unless Meta says otherwise, and
	// MaxTTL the longest that Meta can say. Zero means seven days for the
	// first and thirty for the second.
	TTL, MaxTTL time.Duration
	// MaxBytes bounds one artifact; zero means 1 GiB, negative no bound.
	MaxBytes int64
	// Tenant and User bound what each tenant and each user keep. The defaults
	// are 10 GiB and 100,000 artifacts for a tenant, and for a user no bound
	// of its own.
	Tenant, User Quota
	// OpenBucket, where New is given no bucket, opens it when the first content
	// is about to be written; after an error, again with the next. It is not
	// called by two at once.
	OpenBucket func() (*blob.Bucket, error)
	// Local is who acts on a context without identity. The zero value refuses
	// such calls with tools.ErrIdentityRequired.
	Local identity.Identity
	// Sees, when not nil, says whether the caller on ctx is shown an artifact that
	// it may read by who it is. What it is not shown does not exist for it.
	Sees func(ctx context.Context, info Info) bool
	// MaxQueryBytes bounds a JSON value that Fetch runs a query on; zero means
	// 16 MiB. A query needs about ten times that in memory.
	MaxQueryBytes int64
	// QueryTime bounds how long a query runs; zero means 3 seconds.
	QueryTime time.Duration
	// Now is the clock; nil means time.Now. It must agree with that of the
	// store.
	Now func() time.Time
	// Logger hears of content that could not be kept or removed; nil is silent.
	Logger *slog.Logger
}

// DefaultMaxTTL is the longest that an artifact is kept unless Options say
// otherwise.
const DefaultMaxTTL = 30 * 24 * time.Hour

const (
	defaultTTL         = 7 * 24 * time.Hour
	defaultMaxBytes    = 1 << 30
	defaultTenantBytes = 10 << 30
	defaultTenantCount = 100_000
	defaultQueryBytes  = 16 << 20
	defaultQueryTime   = 3 * time.Second

	// patience is how long an upload may stand still before it is given up,
	// and a removal before it is tried again.
	patience = 10 * time.Minute
	// parallelQueries bounds the queries that run at once, as each needs memory.
	parallelQueries = 2
	lockStripes     = 64
)

// Collections in the store.
const (
	collection      = "artifacts"
	usageCollection = "artifact-usage"
	usageName       = "kept"
)

// Store keeps artifacts. It is safe for concurrent use, also by several
// processes with the same bucket and the same records.
type Store struct {
	opening sync.Mutex
	opened  *blob.Bucket // guarded by opening
	records store.Records
	opts    Options
	queries chan struct{}
	// locks keep the uploads of one tenant in this process from refusing each
	// other's compare-and-set.
	locks [lockStripes]sync.Mutex
	seed  maphash.Seed
}

var _ tools.Sink = (*Store)(nil)

// New returns a store that keeps content in bucket and what it knows about it
// in records. Both stay the caller's to close. A nil bucket is that of
// Options.OpenBucket.
func New(bucket *blob.Bucket, records store.Records, opts *Options) *Store {
	s := &Store{opened: bucket, records: records, queries: make(chan struct{}, parallelQueries), seed: maphash.MakeSeed()}
	if opts != nil {
		s.opts = *opts
	}
	o := &s.opts
	o.TTL, o.MaxTTL = orDefault(o.TTL, defaultTTL), orDefault(o.MaxTTL, DefaultMaxTTL)
	o.MaxBytes, o.MaxQueryBytes = orDefault(o.MaxBytes, defaultMaxBytes), orDefault(o.MaxQueryBytes, defaultQueryBytes)
	o.Tenant.Bytes, o.Tenant.Count = orDefault(o.Tenant.Bytes, defaultTenantBytes), orDefault(o.Tenant.Count, defaultTenantCount)
	o.QueryTime = orDefault(o.QueryTime, defaultQueryTime)
	o.User.Bytes, o.User.Count = orDefault(o.User.Bytes, -1), orDefault(o.User.Count, -1)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return s
}

// bucket returns where the content is, and opens it if that was left to the first
// use.
func (s *Store) bucket() (*blob.Bucket, error) {
	s.opening.Lock()
	defer s.opening.Unlock()
	if s.opened != nil {
		return s.opened, nil
	}
	if s.opts.OpenBucket == nil {
		return nil, errNoBucket
	}
	b, err := s.opts.OpenBucket()
	if err != nil {
		return nil, fmt.Errorf("artifacts: %w", err)
	}
	s.opened = b
	return b, nil
}

var errNoBucket = errors.New("artifacts: New was given neither a bucket nor Options.OpenBucket")

func orDefault[T time.Duration | int64](v, fallback T) T {
	if v == 0 {
		return fallback
	}
	return v
}

// caller returns who acts on ctx.
func (s *Store) caller(ctx context.Context) (identity.Identity, error) {
	id, ok := identity.From(ctx)
	if !ok {
		id = s.opts.Local
	}
	if id.TenantID == "" {
		return identity.Identity{}, &tools.Error{Code: tools.ErrIdentityRequired, Class: tools.ErrClassPermanent, Delivery: tools.NotDelivered,
			Message: "artifacts belong to somebody, and the context does not say to whom"}
	}
	return id, nil
}

// state is where an artifact is between being begun and being gone. Content
// exists in the bucket only while a record does, whatever its state, so that
// whatever a crash leaves behind is found by its record.
type state string

const (
	pending  state = "pending"  // content arrives; nobody sees it
	ready    state = "ready"    // it can be read
	removing state = "removing" // content is being deleted; nobody sees it
)

// record is what is kept about an artifact.
type record struct {
	Info  Info  `json:"info"`
	State state `json:"state"`
	// Taken is how many bytes of the quotas it takes.
	Taken int64 `json:"taken"`
	// Partial says that the content may be there in part, under names that the
	// bucket gives to what is being written.
	Partial bool `json:"partial,omitempty"`

	key      store.Key
	revision store.Revision
}

func (r *record) write(due time.Time) store.Write {
	value, _ := json.Marshal(r) // strings, numbers and times always encode
	return store.Write{Key: r.key, Value: value, If: r.revision, Due: due}
}

// payer is whose quota the artifact takes.
func (r *record) payer() identity.Identity {
	return identity.Identity{TenantID: r.key.Owner.Identity().TenantID, UserID: r.Info.User}
}

func decode(from store.Record) (*record, error) {
	r := &record{key: from.Key, revision: from.Revision}
	if err := json.Unmarshal(from.Value, r); err != nil {
		return nil, fmt.Errorf("artifacts: the record of an artifact cannot be read: %w", err)
	}
	return r, nil
}

// find returns the record of an artifact that the caller may see. It looks once,
// under the caller's own keys, so that an artifact of somebody else takes the
// same road as one that does not exist.
func (s *Store) find(ctx context.Context, id identity.Identity, ref string) (*record, error) {
	o, ok := owner(id, scopeOf(ref))
	if !ok {
		return nil, notFound()
	}
	found, err := s.records.Get(ctx, store.Key{Collection: collection, Owner: o, Name: ref})
	if errors.Is(err, store.ErrNotFound) {
		return nil, notFound()
	}
	if err != nil {
		return nil, err
	}
	r, err := decode(found)
	if err != nil {
		return nil, err
	}
	if !s.visible(ctx, r) {
		return nil, notFound()
	}
	return r, nil
}

func (s *Store) visible(ctx context.Context, r *record) bool {
	return r.State == ready && (r.Info.Expires.IsZero() || s.opts.Now().Before(r.Info.Expires)) &&
		(s.opts.Sees == nil || s.opts.Sees(ctx, r.Info))
}

// blobKey is where the content is. The tenant is hashed, as it may be any text.
func blobKey(k store.Key) string {
	sum := sha256.Sum256([]byte(k.Owner.Identity().TenantID))
	return hex.EncodeToString(sum[:16]) + "/" + k.Name
}
