// Package tasks holds tests in which a server answers calls with tasks and a client follows them through a gateway, in both
// eras of the protocol.
package tasks
