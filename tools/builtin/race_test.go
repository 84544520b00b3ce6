//go:build race

package builtin_test

// operations of the tenants' test are fewer under the race detector, which makes each ten times dearer.
const operations = 1000
