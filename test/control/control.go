// Package control lets a test and the child processes that something else starts for it talk with one another: a child
// finds the address of the test's desk in its environment, reports what happens to it, and takes orders.
package control

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Variable is the environment variable that tells a child the address of the desk.
const Variable = "TEST_CONTROL"

// Gone is the event that the line to a child ended. Its standard input was closed before.
const Gone = "gone"

// limit bounds how long an event is waited for.
const limit = 30 * time.Second

// A Desk is the test's side. It is safe for concurrent use.
type Desk struct {
	listener net.Listener
	on       func(event string)
	work     sync.WaitGroup

	mu     sync.Mutex
	events []string
	news   chan struct{} // closed and replaced with each event
	lines  []net.Conn    // that are open, in the order in which they came
	most   int           // lines open at once
}

// Open returns a desk that is closed when the test ends, and with it the lines to all children. on, which may be nil, is
// called with each event.
func Open(t testing.TB, on func(event string)) *Desk {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &Desk{listener: listener, on: on, news: make(chan struct{})}
	d.work.Go(d.accept)
	t.Cleanup(func() {
		listener.Close()
		d.HangUp()
		d.work.Wait()
	})
	return d
}

// Addr is the value of Variable for children of this desk.
func (d *Desk) Addr() string { return d.listener.Addr().String() }

func (d *Desk) accept() {
	for {
		conn, err := d.listener.Accept()
		if err != nil {
			return
		}
		d.mu.Lock()
		d.lines = append(d.lines, conn)
		d.most = max(d.most, len(d.lines))
		d.mu.Unlock()
		d.work.Go(func() { d.listen(conn) })
	}
}

func (d *Desk) listen(conn net.Conn) {
	in := bufio.NewScanner(conn)
	for in.Scan() {
		d.Note(in.Text())
	}
	d.mu.Lock()
	d.lines = slices.DeleteFunc(d.lines, func(c net.Conn) bool { return c == conn })
	d.mu.Unlock()
	conn.Close()
	d.Note(Gone)
}

// Note adds an event, as if a child had reported it.
func (d *Desk) Note(event string) {
	d.mu.Lock()
	d.events = append(d.events, event)
	close(d.news)
	d.news = make(chan struct{})
	d.mu.Unlock()
	if d.on != nil {
		d.on(event)
	}
}

// Events returns what follows the word in every event that begins with it, in order.
func (d *Desk) Events(word string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.find(word)
}

func (d *Desk) find(word string) []string {
	var out []string
	for _, e := range d.events {
		if first, rest, _ := strings.Cut(e, " "); first == word {
			out = append(out, rest)
		}
	}
	return out
}

// Wait waits for the nth event, counted from 1, that begins with the word, and returns what follows.
func (d *Desk) Wait(t testing.TB, word string, n int) string {
	t.Helper()
	end := time.NewTimer(limit)
	defer end.Stop()
	for {
		d.mu.Lock()
		found, news := d.find(word), d.news
		all := strings.Join(d.events, "; ")
		d.mu.Unlock()
		if len(found) >= n {
			return found[n-1]
		}
		select {
		case <-news:
		case <-end.C:
			t.Fatalf("event %d of %q did not come within %s; there were: %s", n, word, limit, all)
		}
	}
}

// Order tells the child whose line was opened last what to do.
func (d *Desk) Order(t testing.TB, order string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.lines) == 0 {
		t.Fatalf("no child to be told %q", order)
	}
	if _, err := fmt.Fprintln(d.lines[len(d.lines)-1], order); err != nil {
		t.Fatal(err)
	}
}

// HangUp closes the lines to all children.
func (d *Desk) HangUp() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, conn := range d.lines {
		conn.Close()
	}
}

// Most returns how many children had a line at the same time.
func (d *Desk) Most() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.most
}

// A Line is a child's side.
type Line struct {
	conn net.Conn
	mu   sync.Mutex
}

// Dial opens the line of this process, or returns nil when it is no child of a desk.
func Dial() (*Line, error) {
	addr := os.Getenv(Variable)
	if addr == "" {
		return nil, nil
	}
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &Line{conn: conn}, nil
}

// Report tells the desk what happened.
func (l *Line) Report(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.conn, format+"\n", args...)
}

// Orders calls each with what the desk says, until it hangs up.
func (l *Line) Orders(each func(order string)) {
	in := bufio.NewScanner(l.conn)
	for in.Scan() {
		each(in.Text())
	}
}
