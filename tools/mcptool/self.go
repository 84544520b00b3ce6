package mcptool

import (
	"context"

	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// connect is reach for a server that is not the program itself: its tools would
// become tools of their own without end.
func (s *Server) connect(ctx context.Context, l *lane, opts *mcpwire.ClientOptions) (*mcpwire.Client, error) {
	client, err := s.reach(ctx, l, opts)
	if err != nil || s.cfg.Self == "" {
		return client, err
	}
	named, _ := rawjson.Get(client.Server().Raw, "_meta", mcpwire.MetaInstance)
	if instance, _ := rawjson.Unquote(named); instance != s.cfg.Self {
		return client, nil
	}
	_ = client.Close() // it has told all that it has to tell
	return nil, &tools.Error{Class: tools.ErrClassPermanent, Delivery: tools.NotDelivered,
		Message: "the server is this program itself, whose tools would come back as its own without end"}
}
