// Package store is the one seam behind which Toolcrib keeps what must outlive
// a call: records with compare-and-set, append-only logs, and leases.
//
// Every key declares whose it is. An Owner is made by Global, Tenant, User or
// Session; the zero Owner is refused, so that nobody writes for everybody by
// forgetting to say for whom, and all but Global hold the tenant.
//
// Package sqlstore implements the seam on SQL databases, and package storetest
// holds the suite that every implementation passes.
package store
