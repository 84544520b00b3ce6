// Package storetest holds what every implementation of package store must do,
// as one suite that runs against the real thing.
//
//	func TestMain(m *testing.M) { storetest.Main(m, open) }
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, storetest.Harness{New: newDatabase, Open: open})
//	}
package storetest
