package artifacts

import (
	"context"
	"errors"
	"io"

	"github.com/toolcrib/toolcrib/internal/disk"
	"github.com/toolcrib/toolcrib/store"
	"github.com/toolcrib/toolcrib/tools"
)

// source is content that arrives. It remembers whether it failed.
type source struct {
	in  io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.in.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// lost is what Put returns when content was not kept. What the operator can do
// something about is told in the log, with its cause; who wanted it kept learns no
// more than that there is no room, as a cause names files.
func (s *Store) lost(ctx context.Context, meta Meta, from *source, err error) error {
	var told *tools.Error
	if from.err != nil || ctx.Err() != nil || errors.As(err, &told) {
		return err
	}
	s.opts.Logger.ErrorContext(ctx, "content could not be kept", "tool", meta.Tool, "call", meta.CallID, "name", meta.Name, "error", err)
	if !disk.Full(err) && !errors.Is(err, store.ErrFull) {
		return err
	}
	return &tools.Error{Code: ErrNoRoom, Class: tools.ErrClassTransient, Delivery: tools.Answered, Retryable: true,
		Message: "there is no room left to keep it", Err: err}
}
