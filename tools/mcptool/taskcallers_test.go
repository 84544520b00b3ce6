package mcptool

import (
	"strconv"
	"testing"

	"github.com/toolcrib/toolcrib/tools"
)

type notified struct {
	tools.NotifiedPeer
	name string
}

// What is kept of the caller of a task goes with its session, or when there are
// too many.
func TestCallersOfTasksAreForgotten(t *testing.T) {
	var list taskCallers
	begin := func(name string, gone chan struct{}) {
		list.add(taskKey{id: name}, tools.Entrance{Peer: notified{name: name}, ClientGone: gone}.Call())
	}
	heard := func(name string) bool { _, ok := list.of(taskKey{id: name}); return ok }
	gone := make(chan struct{})
	begin("a", gone)
	begin("b", nil)
	if !heard("a") || !heard("b") {
		t.Fatal("who is there does not hear")
	}
	close(gone)
	begin("c", nil)
	if heard("a") || !heard("b") || !heard("c") || len(list.order) != 2 {
		t.Errorf("kept: %v", list.order)
	}
	for i := range maxTasks {
		begin(strconv.Itoa(i), nil)
	}
	if heard("b") || heard("c") || !heard("0") || len(list.peers) != maxTasks || len(list.order) != maxTasks {
		t.Errorf("%d callers are kept", len(list.peers))
	}
}
