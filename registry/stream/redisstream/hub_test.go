package redisstream

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/toolcrib/toolcrib/internal/peertest"
	"github.com/toolcrib/toolcrib/registry/stream"
)

// brittle is a connection whose writes fail once it is broken, which its reader notices when it is let.
type brittle struct {
	net.Conn
	broken *atomic.Bool
	end    sync.Once
}

func (b *brittle) Write(data []byte) (int, error) {
	if strings.Contains(string(data), "subscribe") && b.broken.CompareAndSwap(true, false) {
		defer b.end.Do(func() { b.Close() }) //nolint:errcheck // It is gone.
		return 0, errors.New("the connection is broken")
	}
	return b.Conn.Write(data)
}

// A subscription that could not be sent on a connection that broke is made on the next one.
func TestSubscriptionOnBrokenConnection(t *testing.T) {
	server := peertest.StartRedis(t, nil)
	var broken atomic.Bool
	client := redis.NewClient(&redis.Options{
		Addr: server.Addr(), Protocol: 2, MaxRetries: -1,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			return &brittle{Conn: conn, broken: &broken}, err
		},
	})
	defer client.Close()
	ctx, cancel := context.WithCancel(peertest.Bounded(t))
	h := newHub(ctx, client, slog.New(slog.DiscardHandler))
	defer h.close()
	defer cancel()
	heard := make(chan string, 10)
	for _, name := range []string{"first", "second"} {
		ear := &ear{name: name, hear: func(text string) { heard <- text }}
		if err := h.listen(ctx, ear); err != nil {
			t.Fatal(name, err)
		}
		if err := client.Publish(ctx, name, name).Err(); err != nil {
			t.Fatal(err)
		}
		select {
		case text := <-heard:
			if text != name {
				t.Fatal("heard", text)
			}
		case <-ctx.Done():
			t.Fatal("nothing was heard on", name)
		}
		broken.Store(true)
	}
}

// What confirms the end of a subscription, or one that a new connection made again, confirms no other.
func TestConfirmations(t *testing.T) {
	h := deafHub(t)
	is := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	answer := func(kind string) { h.dispatch(&redis.Subscription{Kind: kind, Channel: "x"}) }
	refuse := func() {
		h.sent = append(h.sent, order{"x", true})
		h.refuse(said(noPermission))
	}

	first := &ear{name: "x"}
	ready := h.add(first)
	if refuse(); !is(ready) || first.denied == nil {
		t.Fatal("a refusal was not told")
	}
	second := &ear{name: "x"}
	ready = h.add(second)
	if answer("unsubscribe"); is(ready) {
		t.Error("the end of the refused subscription confirmed the next one")
	}
	if answer("subscribe"); !is(ready) || second.denied != nil {
		t.Error("a subscription was not confirmed")
	}
	gone := h.remove(second)
	if answer("subscribe"); is(gone) {
		t.Error("a subscription made again confirmed its end")
	}
	third := &ear{name: "x"}
	ready = h.add(third)
	if answer("unsubscribe"); !is(gone) || is(ready) {
		t.Error("the end of a subscription was not confirmed alone")
	}
	if answer("subscribe"); !is(ready) {
		t.Error("a subscription was not confirmed")
	}

	h.lose()
	pending := h.add(&ear{name: "y"})
	h.sent = []order{{"y", true}}
	h.orders = nil
	h.refuse(said(noPermission))
	if is(pending) || len(h.sent) != 1 || len(h.orders) != 2 {
		t.Errorf("the refusal of all subscriptions at once: %d sent, orders %v", len(h.sent), h.orders)
	}
}

// A refusal is that of the order that Redis answers, also when it refused before what was subscribed to nowhere else.
func TestRefusalAfterRefusal(t *testing.T) {
	h := deafHub(t)
	send := func() { h.sent = append(h.sent, h.takeOrders()...) }
	h.lose()
	first, second := &ear{name: "x"}, &ear{name: "y"}
	h.add(first)
	send()
	for first.denied == nil && len(h.sent) > 0 {
		h.refuse(said(noPermission))
		send()
	}
	if first.denied == nil {
		t.Fatal("a refusal was not told")
	}
	h.dispatch(&redis.Subscription{Kind: "unsubscribe", Channel: "x"})
	h.add(second)
	send()
	if h.refuse(said(noPermission)); second.denied == nil {
		t.Errorf("the refusal of the next was not told; %v are not answered", h.sent)
	}
}

// The end of a subscription that could not be sent does not keep the next one from being confirmed.
func TestListenAfterUnsentEnd(t *testing.T) {
	h := deafHub(t)
	first := &ear{name: "x"}
	h.add(first)
	h.dispatch(&redis.Subscription{Kind: "subscribe", Channel: "x"})
	h.remove(first)
	if h.takeOrders(); h.send(order{"x", false}) {
		t.Fatal("sent without a server")
	}
	ready := h.add(&ear{name: "x"})
	h.dispatch(&redis.Subscription{Kind: "subscribe", Channel: "x"})
	select {
	case <-ready:
	default:
		t.Error("the next subscription is not confirmed")
	}
}

// What listened before hears again when it is permitted again.
func TestListenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := deafHub(t)
		e := &ear{name: "x"}
		h.add(e)
		h.dispatch(&redis.Subscription{Kind: "subscribe", Channel: "x"})
		h.takeOrders()
		for range 2 {
			h.sent = []order{{"x", true}}
			h.refuse(said(noPermission))
			if len(h.hearing("x")) != 1 || e.denied != nil {
				t.Fatal("what listened is gone")
			}
			if err := h.listen(t.Context(), &ear{name: "x"}); !errors.Is(err, stream.ErrForbidden) {
				t.Errorf("another listens: %v", err)
			}
			if orders := h.takeOrders(); !slices.Equal(orders, []order{{"x", false}}) {
				t.Errorf("orders = %v, want the end of the subscription", orders)
			}
			h.dispatch(&redis.Subscription{Kind: "unsubscribe", Channel: "x"})
			time.Sleep(relisten)
			synctest.Wait()
			if orders := h.takeOrders(); !slices.Equal(orders, []order{{"x", true}}) {
				t.Errorf("orders = %v after a while, want the subscription", orders)
			}
		}
		h.dispatch(&redis.Subscription{Kind: "subscribe", Channel: "x"})
		time.Sleep(2 * relisten)
		synctest.Wait()
		if orders := h.takeOrders(); len(orders) != 0 || h.channels["x"].lost != nil {
			t.Errorf("orders = %v once it hears again, want none", orders)
		}
	})
}

// deafHub is a hub that sends nothing to Redis.
func deafHub(t *testing.T) *hub {
	h := newHub(t.Context(), redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}}), slog.New(slog.DiscardHandler))
	h.runs = true
	return h
}

// said is an error that Redis answers.
type said string

func (s said) Error() string { return string(s) }
func (said) RedisError()     {}
