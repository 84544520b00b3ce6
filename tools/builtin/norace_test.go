//go:build !race

package builtin_test

// operations is how many random ones the tenants' test makes.
const operations = 10_000
