package faults

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/toolcrib/toolcrib/test/control"
)

// daemonizer starts a grandchild in a session of its own, says which it is, and ends.
func daemonizer() int {
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.SysProcAttr = []string{modeVariable + "=grandchild"}, &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Print(cmd.Process.Pid)
	return 0
}

// founder starts a process in a session of its own that starts another, says which that is, and ends.
func founder() int {
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.SysProcAttr, cmd.Stdout = []string{modeVariable + "=elder"}, &syscall.SysProcAttr{Setsid: true}, os.Stdout
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// elder has a child, says which it is, and stays until it is killed.
func elder() int {
	if code := daemonizer(); code != 0 {
		return code
	}
	os.Stdout.Close()
	grandchild()
	return 0
}

// grandchild stays until it is killed.
func grandchild() {
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE, os.Interrupt)
	select {}
}

// serveChild is the life of a child. What it does beside serving is its mode:
//
//	plain     nothing
//	stubborn  ignore SIGTERM and the end of the input
//	failing   end at once
//	chatty    write a lot to stderr
//	mute      answer nothing, and ignore SIGTERM and the end of the input
func serveChild(mode string) int {
	line, err := control.Dial()
	if err != nil || line == nil {
		fmt.Fprintln(os.Stderr, "no desk:", err)
		return 1
	}
	line.Report("start %d %d", os.Getpid(), syscall.Getpgrp())
	switch mode {
	case "failing":
		fmt.Fprintln(os.Stderr, "out of luck")
		return 3
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
	case "mute":
		signal.Ignore(syscall.SIGTERM)
		select {}
	case "chatty":
		for i := range 5000 {
			fmt.Fprintln(os.Stderr, "line", i)
		}
	}
	c := &childServer{line: line, odd: newOdd(line.Report)}
	c.odd.tools = childTools(c)
	go line.Orders(c.order)
	in := bufio.NewReader(os.Stdin)
	for !c.blind.Load() {
		text, err := in.ReadBytes('\n')
		if len(text) > 1 {
			go c.take(text)
		}
		if err != nil {
			break
		}
	}
	if c.blind.Load() {
		select {}
	}
	line.Report("eof")
	if mode == "stubborn" {
		select {}
	}
	return 0
}

// A childServer is an odd on standard input and output.
type childServer struct {
	line  *control.Line
	odd   *odd
	blind atomic.Bool // the input is read no more
	mu    sync.Mutex
}

func (c *childServer) write(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintln(os.Stdout, text)
}

func (c *childServer) take(text []byte) {
	m := &message{out: c.write}
	if err := json.Unmarshal(text, m); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	c.odd.handle(m, func(answer string) {
		if answer != "" {
			c.write(answer)
		}
	})
}

// order does what the test says.
func (c *childServer) order(order string) {
	switch order {
	case "release":
		c.odd.release()
	case "crash":
		os.Exit(3)
	case "grow":
		c.odd.grow()
		c.write(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	}
}

// childTools are what only a process can do.
func childTools(c *childServer) map[string]func(*odd, *message, func(string)) {
	return map[string]func(*odd, *message, func(string)){
		"pid": func(_ *odd, m *message, reply func(string)) { reply(text(m, strconv.Itoa(os.Getpid()))) },
		"env": func(_ *odd, m *message, reply func(string)) { reply(text(m, strings.Join(os.Environ(), "\n"))) },
		"crash": func(_ *odd, _ *message, _ func(string)) {
			fmt.Fprintln(os.Stderr, "panic: out of luck")
			os.Exit(3)
		},
		"blind": func(_ *odd, m *message, reply func(string)) {
			c.blind.Store(true)
			reply(text(m, "where are you?"))
		},
		"noise": func(_ *odd, m *message, reply func(string)) {
			c.write("console.log(debug)\n{\"not\":\"a message\"}\n[1,2\n\n\x00\xff\n{\"jsonrpc\":\"2.0\",\"id\":99999,\"result\":{}}")
			reply(text(m, "quiet again"))
		},
		"lastwords": func(_ *odd, m *message, reply func(string)) { // the answer, and then no end
			signal.Ignore(syscall.SIGTERM)
			reply(text(m, "farewell"))
			os.Stdout.Close()
			select {}
		},
		"goodbye": func(_ *odd, m *message, reply func(string)) { // the answer, and the end
			reply(text(m, "goodbye"))
			os.Exit(0)
		},
		"family":  func(_ *odd, m *message, reply func(string)) { startGrandchild(m, reply, nil) },
		"daemon":  func(_ *odd, m *message, reply func(string)) { runAs("daemonizer", m, reply) },
		"dynasty": func(_ *odd, m *message, reply func(string)) { runAs("founder", m, reply) },
		"stray": func(_ *odd, m *message, reply func(string)) {
			startGrandchild(m, reply, &syscall.SysProcAttr{Setsid: true})
		},
	}
}

// runAs runs a process that leaves others behind, and answers with what it says.
func runAs(mode string, m *message, reply func(string)) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{modeVariable + "=" + mode, "GORACE=atexit_sleep_ms=0"}
	pid, err := cmd.Output()
	if err != nil {
		reply(failure(m, 1, err.Error()))
		return
	}
	reply(text(m, string(pid)))
}

// startGrandchild starts a process of the child's own; what leaves the child's group has a session of its own.
func startGrandchild(m *message, reply func(string), attr *syscall.SysProcAttr) {
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.SysProcAttr = []string{modeVariable + "=grandchild"}, attr
	if err := cmd.Start(); err != nil {
		reply(failure(m, 1, err.Error()))
		return
	}
	reply(text(m, strconv.Itoa(cmd.Process.Pid)))
}
