package a2atool

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/toolcrib/toolcrib/tools"
)

// faultyGRPC is a peer whose agent answers every call with what handle returns.
func faultyGRPC(t *testing.T, streaming bool, handle func(context.Context) error) (*Peer, *grpc.Server) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error { return handle(stream.Context()) }))
	done := make(chan error, 1)
	go func() { done <- srv.Serve(listener) }()
	t.Cleanup(func() {
		srv.Stop()
		<-done
	})
	s := serveAgent(t, "GRPC 1.0", func(c *a2a.AgentCard) {
		c.SupportedInterfaces[0].URL = "http://" + listener.Addr().String()
		c.Capabilities.Streaming = streaming
	})
	return open(t, local(s.URL)), srv
}

func TestFaultsOverGRPC(t *testing.T) {
	for _, c := range []struct {
		code     codes.Code
		class    tools.ErrorClass
		delivery tools.Delivery
		says     string
	}{
		{codes.Unavailable, tools.ErrClassTransient, tools.DeliveryUnknown, "gRPC Unavailable: why"},
		{codes.Internal, tools.ErrClass5xx, tools.Answered, "gRPC Internal: why"},
		{codes.Unimplemented, tools.ErrClassPermanent, tools.Answered, "why"},
		{codes.ResourceExhausted, tools.ErrClassTransient, tools.Answered, "why"},
		{codes.DeadlineExceeded, tools.ErrClassTimeout, tools.DeliveryUnknown, "why"},
		{codes.InvalidArgument, tools.ErrClassPermanent, tools.Answered, "why"},
		{codes.Unauthenticated, tools.ErrClassPermanent, tools.Answered, "refused the credentials"},
	} {
		for _, streaming := range []bool{true, false} {
			p, _ := faultyGRPC(t, streaming, func(context.Context) error { return status.Error(c.code, "why") })
			te := attempt(t, t.Context(), p)
			if te.Class != c.class || te.Delivery != c.delivery || !strings.Contains(te.Message, c.says) {
				t.Errorf("%s, streaming %v: class %q delivery %d: %s", c.code, streaming, te.Class, te.Delivery, te.Message)
			}
		}
	}
}

func TestDownAgentOverGRPC(t *testing.T) {
	p, srv := faultyGRPC(t, true, func(context.Context) error { return nil })
	srv.Stop()
	if te := attempt(t, t.Context(), p); te.Class != tools.ErrClassTransient || te.Delivery != tools.NotDelivered || te.Code != tools.ErrUnavailable {
		t.Errorf("got %+v", te)
	}
}

func TestLongAnswerOverGRPC(t *testing.T) {
	s := serveAgent(t, "GRPC 1.0", nil)
	cfg := local(s.URL)
	cfg.MaxResponseBytes = 4000
	cat := catalogOf(t, open(t, cfg))
	_, err := tools.Invoke(caller(t, "a", "s", nil), cat, "test_act", say("message "+strings.Repeat("x", 5000)))
	var te *tools.Error
	if !errors.As(err, &te) || te.Class != tools.ErrClassPermanent || !strings.Contains(te.Message, "larger than max") {
		t.Errorf("got %v", err)
	}
}

// The credential goes to the origin of the configured URL alone.
func TestCredentialOverGRPC(t *testing.T) {
	got := make(chan []string, 2)
	p, _ := faultyGRPC(t, false, func(ctx context.Context) error {
		md, _ := metadata.FromIncomingContext(ctx)
		got <- md.Get("authorization")
		return status.Error(codes.InvalidArgument, "you sent "+strings.Join(md.Get("authorization"), ""))
	})
	p.cfg.Auth = &Auth{Kind: AuthBearer, Secret: func(context.Context) (string, error) { return "s3cret-value", nil }}
	attempt(t, t.Context(), p)
	if values := <-got; len(values) != 0 {
		t.Errorf("another origin got %q", values)
	}
	u, err := p.cfg.grpcURL(p.agent.via.URL)
	if err != nil {
		t.Fatal(err)
	}
	p.net.origin = "http://" + u.Host
	te := attempt(t, t.Context(), p)
	if values := <-got; len(values) != 1 || values[0] != "Bearer s3cret-value" || strings.Contains(te.Message, "s3cret") {
		t.Errorf("the origin got %q: %s", values, te.Message)
	}
}

func TestPlacesOfGRPC(t *testing.T) {
	open := Config{AllowInsecureLoopback: true}
	for place, want := range map[string]string{
		"agent.example:443":        "https://agent.example:443",
		"https://agent.example/x":  "https://agent.example/x",
		"127.0.0.1:9":              "http://127.0.0.1:9",
		"agent.example":            "https://agent.example",
		"http://agent.example:1":   "",
		"10.0.0.1:443":             "",
		"u:p@agent.example:1":      "",
		"dns:///agent.example:443": "",
	} {
		u, err := open.grpcURL(place)
		if (err == nil) != (want != "") || err == nil && u.String() != want {
			t.Errorf("%s: %v %v", place, u, err)
		}
	}
	if u, err := new(Config).grpcURL("127.0.0.1:9"); err == nil {
		t.Errorf("this machine may be called: %v", u)
	}
}
