package mcpwire

import (
	"os"
	"sync"
	"syscall"
	"time"
)

// A Nursery takes in the processes that children of this one leave behind: their
// parent has ended, and they have sessions of their own, so that neither a look
// below a child nor a signal to its group finds them. Each ends at the latest
// with the last of the children from which it can descend. It is safe for
// concurrent use.
type Nursery struct {
	self, session int

	mu      sync.Mutex
	last    time.Time
	kin     map[*kin]bool
	orphans map[process]map[*kin]bool // and from whom they can descend
	zombies map[process]time.Time     // and since when they are seen
}

const (
	prSetChildSubreaper = 36
	// reapAfter is how long a process that has ended is left to whoever may be
	// waiting for it.
	reapAfter = 10 * time.Second
)

// NewNursery has the kernel make this process the parent of every descendant
// whose own parent ends. It is for programs that start processes in the session
// of their own only: what is in another is taken for a child's.
func NewNursery() *Nursery {
	n := &Nursery{self: os.Getpid(), kin: map[*kin]bool{}, orphans: map[process]map[*kin]bool{}, zombies: map[process]time.Time{}}
	_, _, _ = syscall.Syscall6(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0, 0, 0, 0) // where there is none, nothing is taken in
	if s, ok := statOf(n.self); ok {
		n.session = s.session
	}
	return n
}

func (n *Nursery) join(k *kin) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.kin[k] = true
}

// gather takes in who has come, and lets go of who has ended.
func (n *Nursery) gather(now time.Time) {
	for p := range n.orphans {
		if s, ok := statOf(p.pid); !ok || s.begun != p.begun {
			delete(n.orphans, p)
		}
	}
	zombies := map[process]time.Time{}
	for _, pid := range childrenOf(n.self) {
		s, ok := readStat(pid)
		p := process{pid, s.begun}
		switch {
		case !ok:
		case s.ended:
			n.bury(p, now, zombies)
		case s.session != n.session && n.orphans[p] == nil:
			n.orphans[p] = n.ancestors(p)
		}
	}
	n.zombies = zombies
}

// ancestors are the children that ran when a process began.
func (n *Nursery) ancestors(p process) map[*kin]bool {
	out := map[*kin]bool{}
	for k := range n.kin {
		if k.root.begun <= p.begun {
			out[k] = true
		}
	}
	return out
}

// bury takes leave of a process that has ended and that nobody waits for.
func (n *Nursery) bury(p process, now time.Time, seen map[process]time.Time) {
	since, ok := n.zombies[p]
	if !ok {
		since = now
	}
	if now.Sub(since) < reapAfter {
		seen[p] = since
		return
	}
	_, _ = syscall.Wait4(p.pid, nil, syscall.WNOHANG, nil)
}

// of returns the orphans that can descend from a child.
func (n *Nursery) of(k *kin) []process {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if now := time.Now(); now.Sub(n.last) >= firstLook {
		n.last = now
		n.gather(now)
	}
	var out []process
	for p, from := range n.orphans {
		if from[k] {
			out = append(out, p)
		}
	}
	return out
}

// leave ends what can descend from a child that has ended, and from no other.
func (n *Nursery) leave(k *kin) {
	if n == nil {
		return
	}
	for range killRounds {
		doomed := n.doomed(k)
		if len(doomed) == 0 {
			break
		}
		for p := range doomed {
			p.signal(syscall.SIGKILL)
		}
		time.Sleep(time.Millisecond)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.kin, k)
	for _, from := range n.orphans {
		delete(from, k)
	}
}

// doomed are the orphans that have no other child to descend from, and what is
// below them.
func (n *Nursery) doomed(k *kin) map[process]bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.gather(time.Now())
	out := map[process]bool{}
	below := &kin{}
	for p, from := range n.orphans {
		if len(from) == 0 || len(from) == 1 && from[k] {
			below.visit(p, out)
		}
	}
	return out
}
