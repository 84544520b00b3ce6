package stream

import "context"

// Bus carries messages that nobody keeps. Its subjects are apart from the names
// of streams, and cost nothing when nobody listens.
type Bus interface {
	// Publish sends a message to everybody who listens to the subject now.
	// That nobody does is no error. It returns when the message is with the
	// connection, and ErrUnavailable when there is no connection.
	Publish(ctx context.Context, subject string, m Message) error

	// Subscribe calls handle with each message of a subject, one after the
	// other in the order of their arrival, until the subscription or the
	// client is closed. From its return on no message is missed but while
	// the connection is broken. What arrives faster than handle returns is
	// buffered up to [MaxBuffered] messages; beyond that messages are lost
	// and the loss is logged, so handle should hand over what takes long.
	Subscribe(ctx context.Context, subject string, handle func(Message)) (Subscription, error)

	// Request asks one of those who respond to a subject, and waits for the
	// answer as long as ctx allows. ErrNoResponder says that nobody responds
	// to the subject and that the question was not delivered; a backend that
	// cannot tell waits for the context. Any other error leaves open whether
	// somebody acted on the question.
	Request(ctx context.Context, subject string, m Message) (Message, error)

	// Respond answers the requests of a subject until the subscription or
	// the client is closed. Where several respond, in one process or many,
	// each request goes to one of them. Up to [MaxResponding] calls of answer
	// run at once; the others wait.
	Respond(ctx context.Context, subject string, answer func(context.Context, Message) Message) (Subscription, error)
}

// Bounds of a subscription.
const (
	MaxBuffered   = 65_536 // messages of one subscription that wait for its handler
	MaxResponding = 256    // answers of one subscription that are made at once
)

// Message is what the bus carries. The receiver may keep the payload.
type Message struct {
	Name    string // what the message is, as the name of an event
	Payload []byte
}

// Subscription is what Subscribe and Respond return.
type Subscription interface {
	// Close ends the subscription. Its handler is not called again once
	// Close returned, and Close waits for calls that run; a handler must not
	// close its own subscription. A second Close does nothing and returns nil.
	Close() error
}
