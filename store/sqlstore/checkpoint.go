package sqlstore

import (
	"context"
	"sync"
)

const (
	// checkpointPages is after about how many pages the log of the database is copied
	// to its file beside the commits, which waits for the disk twice. Pages that many
	// writes changed meanwhile are copied once.
	checkpointPages = 2000
	// mostPages is how long the log becomes before a commit copies what is left of it,
	// after which the log begins anew. Only then is nothing added meanwhile.
	mostPages = 4 * checkpointPages
	pageBytes = 4096
)

// checkpointer copies the log of the database to its file.
type checkpointer struct {
	db      *DB
	pages   int           // about how many were added since, counted where commits are made
	due     chan struct{} // holds one
	running sync.WaitGroup
}

func (c *checkpointer) start(db *DB) {
	c.db, c.due = db, make(chan struct{}, 1)
	c.running.Go(c.run)
}

// added notes that a commit has added pages.
func (c *checkpointer) added(pages int) {
	if c.pages += pages; c.pages < checkpointPages || c.due == nil {
		return
	}
	c.pages = 0
	select {
	case c.due <- struct{}{}:
	default: // the one that is due takes these too
	}
}

// run copies what it can whenever it is due. What it cannot copy stays in the log,
// where it is as safe, until it is due again.
func (c *checkpointer) run() {
	for range c.due {
		if _, err := c.db.read.ExecContext(context.Background(), "pragma wal_checkpoint(passive)"); err != nil {
			c.db.room.note(c.db.fault(err))
		}
	}
}

// end returns when nothing is copied any more. No commit comes after it.
func (c *checkpointer) end() {
	if c.due != nil {
		close(c.due)
		c.running.Wait()
	}
}
