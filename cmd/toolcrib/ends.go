package main

import (
	"os"
	"os/signal"
	"syscall"
)

// endSignals are those that ask a program to end which has no configuration to read
// again. SIGHUP is one of them: the terminal is gone, or somebody wants the program to
// begin anew. A program that was started to ignore it, as by nohup, goes on.
func endSignals() []os.Signal {
	list := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		list = append(list, syscall.SIGHUP)
	}
	return list
}

// endSignals are those that end what a plan serves: with a file, SIGHUP has it read
// again; see follow.
func (p *plan) endSignals() []os.Signal {
	if p.file == "" {
		return endSignals()
	}
	return []os.Signal{os.Interrupt, syscall.SIGTERM}
}
