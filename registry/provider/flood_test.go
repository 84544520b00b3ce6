//go:build unix

package provider_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/redis/go-redis/v9"

	"github.com/toolcrib/toolcrib/internal/loglimit"
	"github.com/toolcrib/toolcrib/registry"
	"github.com/toolcrib/toolcrib/registry/stream"
)

// linesOf counts the lines of a log by their messages.
func linesOf(log string) map[string]int {
	lines := map[string]int{}
	for line := range strings.Lines(log) {
		_, rest, _ := strings.Cut(line, `msg=`)
		message, _, _ := strings.Cut(strings.TrimPrefix(rest, `"`), `"`)
		lines[message]++
	}
	return lines
}

// A worker of one toolset that sends a gateway what it refuses does not fill its log.
func TestFloodsOfTheLog(t *testing.T) {
	const many = 2 * loglimit.Most
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			g := b.start(t)
			g.crib(t)
			flood := g.floodRedis
			if g.admin == nil {
				flood = g.floodNATS
			}
			says := flood(t, many)
			mail := g.client(t, "mail")
			for range many {
				if _, err := mail.Request(caller(t), registry.AnnounceSubject(""), stream.Message{Name: registry.MessageLeave, Payload: []byte("{}")}); err != nil {
					t.Fatal(err)
				}
			}
			for _, message := range append(says, "a worker's goodbye was refused") {
				await(t, "the log says that "+message, func() bool { return linesOf(g.log.String())[message] >= loglimit.Most })
			}
			for message, n := range linesOf(g.log.String()) {
				if n > loglimit.Most {
					t.Errorf("%d lines say that %s", n, message)
				}
			}
		})
	}
}

// floodNATS asks for answers to where a gateway may not answer.
func (g *guarded) floodNATS(t *testing.T, many int) (says []string) {
	t.Helper()
	conn, err := nats.Connect(g.url, nats.UserInfo("mail", "secret-of-mail"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for i := range many {
		for _, inbox := range []string{"toolcrib.bus", "elsewhere"} {
			if err := conn.PublishRequest("toolcrib.ask.registry.default.announce.announce", fmt.Sprintf("%s.%d", inbox, i), []byte("{}")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	return []string{"a question is not answered, as its answer is to go to a subject that is no inbox", "the stream server does not permit what this process needs"}
}

// floodRedis publishes what is no message, and asks for answers to where no inbox is.
func (g *guarded) floodRedis(t *testing.T, many int) (says []string) {
	t.Helper()
	conn := redis.NewClient(&redis.Options{Addr: g.admin.Options().Addr, Username: "mail", Password: "secret-of-mail", Protocol: 2})
	defer conn.Close()
	channels := conn.PubSubChannels(t.Context(), "toolcrib:0:respond:*:registry:default:announce").Val()
	if len(channels) != 1 {
		t.Fatalf("those who respond: %q", channels)
	}
	for range many {
		for channel, text := range map[string]string{"toolcrib:0:bus:registry:default:pong": "\xff", channels[0]: "\x09elsewhere\x01n\x05leave{}"} {
			if err := conn.Publish(t.Context(), channel, text).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return []string{"a message on the bus is none of ours", "a question is not answered, as its answer is to go to a channel that is no inbox"}
}
