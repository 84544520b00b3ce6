package tools

import "github.com/toolcrib/toolcrib/internal/spread"

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
	spread.Each(len(list), worthAWorker, func(i int) {
		f := &list[i]
		f.b, f.err = c.newBinding(&f.d, f.old)
	})
	for i := range list {
		if f := &list[i]; f.err == nil {
			f.err = f.b.amend()
		}
	}
	spread.Each(len(list), worthAWorker, func(i int) {
		f := &list[i]
		if f.err == nil {
			f.err = f.b.complete()
		}
		if f.err != nil {
			f.b = nil
		}
	})
}

// worthAWorker is how many candidates make up for starting a goroutine.
const worthAWorker = 8
