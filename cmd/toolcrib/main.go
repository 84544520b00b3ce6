// Command toolcrib gives agents and people every tool they may use, wherever
// it lives: over MCP, over a JSON protocol, and on the command line.
//
// The exit status says how a command ended: 0 done, 1 failure, 2 the command
// line is wrong, 3 no such tool, 4 invalid arguments, 5 the tool failed, 6
// denied, 7 timed out or overloaded, 130 interrupted.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// A reader of our output that goes away must not end the program before
	// its children have ended: the write fails instead.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	os.Exit(run(os.Args[1:], &app{in: os.Stdin, out: os.Stdout, errOut: os.Stderr}))
}
