package tools

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// candidate is a descriptor on its way to a binding.
type candidate struct {
	d   ToolDescriptor
	old *binding // that it takes the place of, or nil
	b   *binding
	err error
}

// bindAll makes bindings of descriptors, several at once. Only the operator's
// function is called for one after the other. The caller holds the lock.
func (c *catalog) bindAll(list []candidate) {
	sideBySide(list, func(f *candidate) { f.b, f.err = c.newBinding(&f.d, f.old) })
	for i := range list {
		if f := &list[i]; f.err == nil {
			f.err = f.b.amend()
		}
	}
	sideBySide(list, func(f *candidate) {
		if f.err == nil {
			f.err = f.b.complete()
		}
		if f.err != nil {
			f.b = nil
		}
	})
}

// sideBySide calls work for each candidate, on several goroutines where that is
// worth it.
func sideBySide(list []candidate, work func(*candidate)) {
	var next atomic.Int64
	some := func() {
		for i := next.Add(1) - 1; i < int64(len(list)); i = next.Add(1) - 1 {
			work(&list[i])
		}
	}
	var others sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(list)/worthAWorker) - 1 {
		others.Go(some)
	}
	some()
	others.Wait()
}

// worthAWorker is how many candidates make up for starting a goroutine.
const worthAWorker = 8
