//go:build !peers

package docs

import "testing"

// npmPath says that blocks which need npm are left out.
func npmPath(*testing.T, string) (path string, run bool) { return "", false }
