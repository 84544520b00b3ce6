//go:build !linux

package mcpwire

import "syscall"

// kin are not known here: what leaves the group of a child is left alone.
type kin struct{}

func newKin(int, *leash, *Nursery) *kin { return &kin{} }
func (*kin) stirred()                   {}
func (*kin) look()                      {}
func (*kin) watch(<-chan struct{})      {}
func (*kin) signal(syscall.Signal) int  { return 0 }
func (*kin) end()                       {}

// A Nursery takes in what the children of this process leave behind, on Linux.
// Here it does nothing.
type Nursery struct{}

// NewNursery returns a Nursery.
func NewNursery() *Nursery { return &Nursery{} }
