package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/toolcrib/toolcrib/store"
)

// maxGroup bounds how many callers' work is committed at once.
const maxGroup = 64

// committer commits the work of callers. Bringing a commit to the disk takes much
// longer than the work in it, so whatever callers want while one commit is on its
// way goes into the next one together.
type committer struct {
	db *DB
	tx *tx // of the goroutine that runs

	mu      sync.Mutex
	waiting []*job // for the disk
	relaxed []*job // that do not wait for the disk
	running bool
	begin   chan struct{} // holds one: there are jobs, and nobody does them
	ended   sync.WaitGroup
}

// job is what one caller wants to be written.
type job struct {
	work func(ctx context.Context, tx *tx) error // may be done again, when what it did was undone
	// revisions is how many of them the work takes.
	revisions int
	// later says that the commit need not be on the disk.
	later bool
	done  chan error
}

// tx is the connection that writes, with its statements. One goroutine uses it at
// a time.
type tx struct {
	conn  *sql.Conn
	ready map[string]*sql.Stmt
	// revision is the last one that was handed out, and reserved the last one that
	// this process may hand out.
	revision, reserved int64
	// synced says that a commit waits for the disk.
	synced bool
	// changed says that a job has changed something.
	changed bool
	// pages is about how many pages the transaction changes.
	pages int
}

// How far a commit goes: to the disk, or to the system.
const (
	toDisk   = "pragma synchronous = full"
	toSystem = "pragma synchronous = normal"
)

// statement returns a query's statement, which is prepared once.
func (t *tx) statement(ctx context.Context, query string) (*sql.Stmt, error) {
	if stmt, ok := t.ready[query]; ok {
		return stmt, nil
	}
	stmt, err := t.conn.PrepareContext(ctx, query)
	if err == nil {
		t.ready[query] = stmt
	}
	return stmt, err
}

func (t *tx) exec(ctx context.Context, query string, args ...any) error {
	_, err := t.change(ctx, query, args...)
	return err
}

// change is exec that reports whether it changed any row.
func (t *tx) change(ctx context.Context, query string, args ...any) (bool, error) {
	stmt, err := t.statement(ctx, query)
	if err != nil {
		return false, err
	}
	res, err := stmt.ExecContext(ctx, args...)
	if err != nil {
		return false, err
	}
	t.pages++
	for _, arg := range args {
		if value, ok := arg.([]byte); ok {
			t.pages += len(value) / pageBytes
		}
	}
	n, err := res.RowsAffected()
	t.changed = t.changed || n > 0
	return n > 0, err
}

// scan runs a query for one row.
func (t *tx) scan(ctx context.Context, query string, args []any, into ...any) error {
	stmt, err := t.statement(ctx, query)
	if err != nil {
		return err
	}
	t.changed = t.changed || !strings.HasPrefix(query, "select")
	return stmt.QueryRowContext(ctx, args...).Scan(into...)
}

// close returns the connection.
func (t *tx) close() error {
	faults := make([]error, 0, len(t.ready)+1)
	for _, stmt := range t.ready {
		faults = append(faults, stmt.Close())
	}
	return errors.Join(append(faults, t.conn.Close())...)
}

// transaction runs work in a transaction that writes, possibly together with the
// work of others, which does not see whether this fails. When it returns nil, the
// work is on the disk. Work that has begun is not interrupted by ctx.
func (db *DB) transaction(ctx context.Context, work func(ctx context.Context, tx *tx) error) error {
	return db.perform(ctx, &job{work: work})
}

func (db *DB) perform(ctx context.Context, j *job) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j.done = make(chan error, 1)
	if !db.commits.add(j) {
		return store.ErrClosed
	}
	select {
	case err := <-j.done:
		return db.outcome(err)
	case <-ctx.Done():
	}
	if db.commits.withdraw(j) {
		return ctx.Err()
	}
	return db.outcome(<-j.done)
}

// outcome is fault for what came of a job.
func (db *DB) outcome(err error) error {
	err = db.fault(err)
	db.room.note(err)
	return err
}

// add hands in a job, and reports false when the database is closed.
func (c *committer) add(j *job) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.db.closed.Load() {
		return false
	}
	list := c.list(j)
	*list = append(*list, j)
	if !c.running {
		c.running = true
		c.begin <- struct{}{}
	}
	return true
}

// list is where a job waits. The caller holds the lock.
func (c *committer) list(j *job) *[]*job {
	if j.later {
		return &c.relaxed
	}
	return &c.waiting
}

// close refuses further jobs, and reports whether they were refused already.
func (c *committer) close() (already bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	already = c.db.closed.Swap(true)
	if !already {
		close(c.begin)
	}
	return already
}

// withdraw takes a job back, and reports false when it has begun.
func (c *committer) withdraw(j *job) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.list(j)
	i := slices.Index(*list, j)
	if i < 0 {
		return false
	}
	*list = append((*list)[:i:i], (*list)[i+1:]...)
	return true
}

// next takes the jobs of the next commit. Those that do not wait for the disk go
// along with those that do.
func (c *committer) next(synced bool) []*job {
	c.mu.Lock()
	defer c.mu.Unlock()
	var group []*job
	if synced {
		group = taken(group, &c.waiting)
	}
	return taken(group, &c.relaxed)
}

// taken moves jobs to a group, as far as there is room.
func taken(group []*job, from *[]*job) []*job {
	n := min(len(*from), maxGroup-len(group))
	group = append(group, (*from)[:n]...)
	*from = (*from)[n:]
	return group
}

// gather lets those go first who are about to hand in a job too. Where the
// processor is idle that takes no time, and where it is busy a group becomes large.
func (c *committer) gather() {
	for before := 0; ; {
		c.mu.Lock()
		now := len(c.waiting) + len(c.relaxed)
		c.mu.Unlock()
		if now == before || now >= maxGroup {
			return
		}
		before = now
		runtime.Gosched()
	}
}

// wanted reports whether somebody waits for the disk.
func (c *committer) wanted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting) > 0
}

// idle reports whether there is nothing to do.
func (c *committer) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = len(c.waiting)+len(c.relaxed) > 0
	return !c.running
}

// run does what is handed in until the database is closed. It is one goroutine for
// all that time, because SQLite needs a large stack, which a new one has to grow.
func (c *committer) run() {
	for range c.begin {
		c.work(context.Background())
	}
}

// work does what is handed in, until there is nothing.
func (c *committer) work(ctx context.Context) {
	for !c.idle() {
		c.gather()
		synced := c.wanted()
		err := c.tx.begin(ctx, synced)
		// Jobs that were handed in while this waited for another process
		// belong to this commit too.
		group := c.next(synced)
		if err != nil {
			answer(group, nil, err)
			continue
		}
		c.commit(ctx, group)
	}
}

// begin begins a transaction, whose commit waits for the disk or does not.
func (t *tx) begin(ctx context.Context, synced bool) error {
	if synced != t.synced {
		how := toSystem
		if synced {
			how = toDisk
		}
		if err := t.exec(ctx, how); err != nil {
			return err
		}
		t.synced = synced
	}
	return t.exec(ctx, "begin immediate")
}

// blockSize is how many revisions a process takes from their counter at once, so that
// few commits change it. What a process has left when it ends is never handed out.
const blockSize = 1000

// reserve sees to it that there are revisions for a group.
func (t *tx) reserve(ctx context.Context, group []*job) error {
	total := int64(0)
	for _, j := range group {
		total += int64(j.revisions)
	}
	if total <= t.reserved-t.revision {
		return nil
	}
	n := max(total, blockSize)
	last, err := count(ctx, t, "revision", n)
	t.revision, t.reserved = last-n, last
	return err
}

// rollback undoes the transaction, and with it what it may have taken from a counter.
func (t *tx) rollback(ctx context.Context) error {
	t.revision, t.reserved = 0, 0
	return t.exec(ctx, "rollback")
}

// commit does the jobs and tells their callers when the work is on the disk. As
// hardly any job fails that has changed something, what could be undone alone is
// only kept when one does.
func (c *committer) commit(ctx context.Context, group []*job) {
	faults, broken := c.tx.do(ctx, group, c.tx.attempt)
	if errors.Is(broken, errHalfDone) {
		if broken = c.tx.again(ctx); broken == nil {
			faults, broken = c.tx.do(ctx, group, c.tx.guarded)
		}
	}
	if broken == nil && c.db.writes.Add(uint64(len(group)))%sweepEvery < uint64(len(group)) {
		broken = c.db.removeExpired(ctx, c.tx)
	}
	if broken == nil {
		broken = c.tx.exec(ctx, "commit")
	}
	if broken != nil {
		_ = c.tx.rollback(ctx) // there may be nothing left to undo
	}
	answer(group, faults, broken)
	c.db.log.added(c.tx.pages)
	c.tx.pages = 0
}

// do does the jobs in one way, and returns what came of each. broken says that the
// transaction itself is.
func (t *tx) do(ctx context.Context, group []*job, one func(context.Context, *job) (fault, broken error)) (faults []error, broken error) {
	faults = make([]error, len(group))
	broken = t.reserve(ctx, group)
	for i := 0; i < len(group) && broken == nil; i++ {
		faults[i], broken = one(ctx, group[i])
	}
	return faults, broken
}

// again begins the transaction anew.
func (t *tx) again(ctx context.Context) error {
	if err := t.rollback(ctx); err != nil {
		return err
	}
	return t.exec(ctx, "begin immediate")
}

// errHalfDone says that a job failed after it had changed something.
var errHalfDone = errors.New("sqlstore: a part of what was to be written cannot be")

// attempt does one job. When it fails there must be nothing to undo.
func (t *tx) attempt(ctx context.Context, j *job) (fault, broken error) {
	t.changed = false
	fault = j.work(ctx, t)
	switch {
	case fault != nil && !expected(fault):
		return nil, fault // The database may have ended the transaction.
	case fault != nil && t.changed:
		return nil, errHalfDone
	}
	return fault, nil
}

// guarded does one job, and undoes it when it fails.
func (t *tx) guarded(ctx context.Context, j *job) (fault, broken error) {
	if err := t.exec(ctx, "savepoint job"); err != nil {
		return nil, err
	}
	if fault = j.work(ctx, t); fault != nil {
		if err := t.exec(ctx, "rollback to job"); err != nil {
			return nil, fmt.Errorf("%w: %w", fault, err)
		}
	}
	return fault, t.exec(ctx, "release job")
}

// answer tells each caller what came of its job, or that all failed.
func answer(group []*job, faults []error, all error) {
	for i, j := range group {
		err := all
		if err == nil {
			err = faults[i]
		}
		j.done <- err
	}
}

// statements are prepared once and used again.
type statements struct {
	db    *sql.DB
	known sync.Map // of *sql.Stmt by query
}

// get returns a query's statement. Queries are put together from constants of
// this package, and few; when two callers prepare one at once, one of the
// statements stays unused until the database is closed.
func (s *statements) get(ctx context.Context, query string) (*sql.Stmt, error) {
	if known, ok := s.known.Load(query); ok {
		return known.(*sql.Stmt), nil
	}
	stmt, err := s.db.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	kept, _ := s.known.LoadOrStore(query, stmt)
	return kept.(*sql.Stmt), nil
}

func (s *statements) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	stmt, err := s.get(ctx, query)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(ctx, args...)
}

// scan runs a query for one row.
func (s *statements) scan(ctx context.Context, query string, args []any, into ...any) error {
	stmt, err := s.get(ctx, query)
	if err != nil {
		return err
	}
	return stmt.QueryRowContext(ctx, args...).Scan(into...)
}
