package a2atool

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	a2agrpcv0 "github.com/a2aproject/a2a-go/v2/a2agrpc/v0"
	a2agrpc "github.com/a2aproject/a2a-go/v2/a2agrpc/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"

	"github.com/toolcrib/toolcrib/internal/netguard"
	"github.com/toolcrib/toolcrib/tools"
)

// grpcTransport returns the maker of gRPC connections, given the way in which
// the library's version makes a transport of one.
func (n *network) grpcTransport(wrap func(*grpc.ClientConn) a2aclient.Transport) a2aclient.TransportFactory {
	return a2aclient.TransportFactoryFn(func(_ context.Context, _ *a2a.AgentCard, i *a2a.AgentInterface) (a2aclient.Transport, error) {
		u, err := n.cfg.grpcURL(i.URL)
		if err != nil {
			return nil, err
		}
		conn, err := n.grpcConn(u)
		if err != nil {
			return nil, err
		}
		return wrap(conn), nil
	})
}

func (n *network) grpcV1() a2aclient.TransportFactory {
	return n.grpcTransport(a2agrpc.NewGRPCTransport)
}
func (n *network) grpcV0() a2aclient.TransportFactory {
	return n.grpcTransport(a2agrpcv0.NewGRPCTransport)
}

// grpcURL reads the place of a gRPC interface: a URL, or host and port alone,
// as most cards have it, which means TLS unless it is this machine's and plain
// text is allowed there.
func (c *Config) grpcURL(place string) (*url.URL, error) {
	if !strings.Contains(place, "://") {
		scheme := "https"
		host, _, err := net.SplitHostPort(place)
		if err == nil && c.AllowInsecureLoopback && netguard.HostKind(host) == "loopback" {
			scheme = "http"
		}
		place = scheme + "://" + place
	}
	u, err := url.Parse(place)
	if err != nil || u.Hostname() == "" || u.User != nil {
		return nil, errBadPlace
	}
	return u, c.admits(u)
}

// grpcConn makes a connection that is dialled at the first call.
func (n *network) grpcConn(u *url.URL) (*grpc.ClientConn, error) {
	creds, control := credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12}), n.cfg.policy().Control
	if u.Scheme == "http" {
		creds, control = insecure.NewCredentials(), netguard.LoopbackOnly
	}
	dialer := &net.Dialer{Timeout: dialTimeout, Control: control}
	auth := n.grpcAuth(u)
	return grpc.NewClient("passthrough:///"+strings.SplitN(netguard.Origin(u), "://", 2)[1],
		grpc.WithTransportCredentials(creds),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return dialer.DialContext(ctx, "tcp", addr) }),
		grpc.WithUserAgent(userAgent),
		grpc.WithStatsHandler(grpcTrips{}),
		grpc.WithMaxHeaderListSize(maxHeaderBytes),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(int(min(n.cfg.MaxResponseBytes, 1<<31-1)))),
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, next grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			ctx, err := auth(ctx)
			if err != nil {
				return err
			}
			err = next(ctx, method, req, reply, cc, opts...)
			tripFrom(ctx).failedWith(err)
			return err
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, next grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			ctx, err := auth(ctx)
			if err != nil {
				return nil, err
			}
			stream, err := next(ctx, desc, cc, method, opts...)
			if err != nil {
				tripFrom(ctx).failedWith(err)
				return nil, err
			}
			return &followed{stream, tripFrom(ctx)}, nil
		}),
	)
}

// grpcAuth returns what adds the credential to a call, if the place is of the
// origin that may have it.
func (n *network) grpcAuth(u *url.URL) func(context.Context) (context.Context, error) {
	return func(ctx context.Context) (context.Context, error) {
		if n.cfg.Auth == nil || netguard.Origin(u) != n.origin {
			return ctx, nil
		}
		if n.cfg.Auth.Query != "" {
			return ctx, &refusedError{errors.New("gRPC has no query for the credential")}
		}
		req := (&http.Request{URL: u, Header: http.Header{}}).WithContext(ctx)
		if err := n.authorize(req, tripFrom(ctx)); err != nil {
			return ctx, &refusedError{err}
		}
		for name, values := range req.Header {
			ctx = metadata.AppendToOutgoingContext(ctx, strings.ToLower(name), values[0])
		}
		return ctx, nil
	}
}

// followed is a stream whose trip is told with what it failed. What grpc tells a
// stats handler at the end of a call is not always that: a server that answers
// before the request was written ends it without an error there.
type followed struct {
	grpc.ClientStream
	trip *trip
}

// RecvMsg implements grpc.ClientStream.
func (f *followed) RecvMsg(m any) error {
	err := f.ClientStream.RecvMsg(m)
	if !errors.Is(err, io.EOF) { // which is the end of a stream that succeeded
		f.trip.failedWith(err)
	}
	return err
}

// grpcTrips notes on the context's trip that a call was sent.
type grpcTrips struct{}

func (grpcTrips) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (grpcTrips) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (grpcTrips) HandleConn(context.Context, stats.ConnStats)                       {}

func (grpcTrips) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if _, sent := s.(*stats.OutHeader); sent {
		tripFrom(ctx).sent()
	}
}

// grpc judges a status that carries no error of the protocol.
func (v *verdict) grpc(k known) bool {
	if k.code == codes.OK {
		return false
	}
	v.class, v.reason = tools.ErrClassPermanent, fmt.Sprintf("gRPC %s: %s", k.code, k.said)
	switch k.code {
	case codes.Unavailable, codes.Canceled, codes.Aborted:
		v.class = tools.ErrClassTransient
		return true // how far it came is known from the trip alone
	case codes.DeadlineExceeded:
		v.class = tools.ErrClassTimeout
		return true
	case codes.ResourceExhausted:
		if !strings.Contains(k.said, "larger than max") {
			v.class = tools.ErrClassTransient
		}
	case codes.Internal, codes.Unknown, codes.DataLoss:
		v.class = tools.ErrClass5xx
	}
	v.delivery = tools.Answered
	return true
}
