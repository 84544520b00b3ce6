package mcpwire

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const (
	// firstLook is how soon after a message of the child its kin is looked at;
	// the pause then doubles up to lastLook.
	firstLook = 100 * time.Millisecond
	lastLook  = 2 * time.Second
	// mostKin bounds how many processes are kept in mind.
	mostKin = 4096
	// killRounds bounds how often what is left is killed again: a process can
	// start others while it is being killed.
	killRounds = 50
)

// A process is one that runs, or ran: its id alone can be another's by now.
type process struct {
	pid   int
	begun uint64 // in ticks since the machine started
}

// kin are the processes that descend from a child and have left its group, with
// setsid for instance, so that a signal to the group does not reach them. Each
// is kept in mind once it was seen below the child or below another of them,
// also when its own parent has ended, since nothing tells then whose it is.
// What leaves and loses its parent between two looks is found by a Nursery alone.
type kin struct {
	root    process
	leash   *leash
	nursery *Nursery      // may be nil
	stir    chan struct{} // holds one: the child has said something

	mu     sync.Mutex
	known  map[process]bool // true: outside of the group
	strays []process
	told   []string // what the leash knows
}

func newKin(pid int, l *leash, n *Nursery) *kin {
	k := &kin{leash: l, nursery: n, stir: make(chan struct{}, 1), known: map[process]bool{}}
	if s, ok := statOf(pid); ok {
		k.root = process{pid, s.begun}
	}
	n.join(k)
	return k
}

// stirred says that the child is doing something.
func (k *kin) stirred() {
	select {
	case k.stir <- struct{}{}:
	default:
	}
}

// watch looks again and again until the child has ended.
func (k *kin) watch(exited <-chan struct{}) {
	pause := firstLook
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-exited:
			return
		case <-k.stir:
			if pause > firstLook {
				pause = firstLook
				timer.Reset(pause)
			}
			continue
		case <-timer.C:
		}
		k.look()
		pause = min(2*pause, lastLook)
		timer.Reset(pause)
	}
}

// look finds who has come and who has gone, and tells the leash.
func (k *kin) look() {
	orphans := k.nursery.of(k)
	k.mu.Lock()
	defer k.mu.Unlock()
	alive := map[process]bool{}
	for p := range k.known {
		k.visit(p, alive)
	}
	k.visit(k.root, alive)
	delete(alive, k.root)
	k.known, k.strays = alive, nil
	for p, outside := range alive {
		if outside {
			k.strays = append(k.strays, p)
		}
	}
	left := map[process]bool{} // the orphans and what is below them
	for _, p := range orphans {
		k.visit(p, left)
	}
	words := []string{}
	for _, p := range slices.AppendSeq(slices.Clone(k.strays), maps.Keys(left)) {
		words = append(words, fmt.Sprintf("%d:%d", p.pid, p.begun))
	}
	slices.Sort(words)
	if words = slices.Compact(words); !slices.Equal(words, k.told) {
		k.told = words
		k.leash.tell(words)
	}
}

// visit adds a process that is alive, and whatever is below it.
func (k *kin) visit(p process, alive map[process]bool) {
	if _, have := alive[p]; have || len(alive) >= mostKin {
		return
	}
	s, ok := statOf(p.pid)
	if !ok || s.begun != p.begun {
		return
	}
	alive[p] = s.group != k.root.pid
	for _, pid := range childrenOf(p.pid) {
		if child, ok := statOf(pid); ok && child.parent == p.pid {
			k.visit(process{pid, child.begun}, alive)
		}
	}
}

// signal sends a signal to those outside of the group and returns how many there
// are.
func (k *kin) signal(sig syscall.Signal) int {
	k.look()
	k.mu.Lock()
	strays := k.strays
	k.mu.Unlock()
	for _, p := range strays {
		p.signal(sig)
	}
	return len(strays)
}

// end kills those outside of the group, and what they start meanwhile.
func (k *kin) end() {
	for range killRounds {
		if k.signal(syscall.SIGKILL) == 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	k.nursery.leave(k)
}

// signal reaches the process and never another that has got its id: the handle
// stands for one process, whose beginning is compared after it was opened.
func (p process) signal(sig syscall.Signal) {
	handle, err := os.FindProcess(p.pid)
	if err != nil {
		return
	}
	defer func() { _ = handle.Release() }()
	if s, ok := statOf(p.pid); ok && s.begun == p.begun {
		_ = handle.Signal(sig)
	}
}

// stat is what the kernel says of a process.
type stat struct {
	parent, group, session int
	begun                  uint64
	ended                  bool // nobody has waited for it yet
}

// statOf returns that of a process that runs.
func statOf(pid int) (stat, bool) {
	s, ok := readStat(pid)
	return s, ok && !s.ended
}

func readStat(pid int) (stat, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, false
	}
	// The name of the program, in parentheses, can have any bytes.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 {
		return stat{}, false
	}
	number := func(i int) int {
		n, _ := strconv.Atoi(string(fields[i]))
		return n
	}
	begun, err := strconv.ParseUint(string(fields[19]), 10, 64)
	return stat{number(1), number(2), number(3), begun, fields[0][0] == 'Z' || fields[0][0] == 'X'}, err == nil
}

// childrenOf returns the processes whose parent this is.
func childrenOf(pid int) []int {
	lists, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children") // the pattern is well-formed
	if len(lists) == 0 {
		return childrenByScan(pid)
	}
	var out []int
	for _, name := range lists {
		text, _ := os.ReadFile(name) // a thread that has ended has none
		for _, word := range bytes.Fields(text) {
			if child, err := strconv.Atoi(string(word)); err == nil {
				out = append(out, child)
			}
		}
	}
	return out
}

// childrenByScan is for kernels that keep no lists.
func childrenByScan(pid int) []int {
	entries, _ := filepath.Glob("/proc/[0-9]*")
	var out []int
	for _, entry := range entries {
		child, _ := strconv.Atoi(filepath.Base(entry))
		if s, ok := statOf(child); ok && s.parent == pid {
			out = append(out, child)
		}
	}
	return out
}
