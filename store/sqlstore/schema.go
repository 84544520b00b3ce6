package sqlstore

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"slices"
)

//go:embed schema/*.sql
var schemaFiles embed.FS

// prepare brings the tables up to date, in one transaction, so that of several
// processes which open a new file at once the first makes the tables and the
// others find them.
func (db *DB) prepare(ctx context.Context) error {
	steps, err := schemaSteps()
	if err != nil {
		return err
	}
	tx, err := db.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // without effect after Commit
	done, err := schemaVersion(ctx, tx)
	if err != nil {
		return err
	}
	if done > len(steps) {
		return fmt.Errorf("the file was written by a later version: its tables are at step %d, and this program knows %d", done, len(steps))
	}
	for i, step := range steps[done:] {
		if _, err := tx.ExecContext(ctx, step); err != nil {
			return fmt.Errorf("step %d of the tables: %w", done+i+1, err)
		}
	}
	if done == len(steps) {
		return nil
	}
	if _, err := tx.ExecContext(ctx, "delete from schema_version"); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "insert into schema_version (step) values (?)", len(steps)); err != nil {
		return err
	}
	return tx.Commit()
}

// schemaSteps returns the statements of each step, in order.
func schemaSteps() ([]string, error) {
	entries, err := schemaFiles.ReadDir("schema")
	if err != nil {
		return nil, err
	}
	var names, steps []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.Sort(names)
	for _, name := range names {
		text, err := schemaFiles.ReadFile("schema/" + name)
		if err != nil {
			return nil, err
		}
		steps = append(steps, string(text))
	}
	return steps, nil
}

// schemaVersion returns how many steps the tables have behind them.
func schemaVersion(ctx context.Context, tx *sql.Tx) (int, error) {
	if _, err := tx.ExecContext(ctx, "create table if not exists schema_version (step integer not null)"); err != nil {
		return 0, err
	}
	var step int
	err := tx.QueryRowContext(ctx, "select step from schema_version").Scan(&step)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return step, err
}
