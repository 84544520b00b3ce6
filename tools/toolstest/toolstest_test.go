package toolstest_test

import (
	"testing"

	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/tools/toolstest"
)

func TestCatalog(t *testing.T) {
	toolstest.RunCatalog(t, func() tools.ToolCatalog { return tools.NewCatalog() })
}

func TestCatalogWithIdentity(t *testing.T) {
	toolstest.RunCatalog(t, func() tools.ToolCatalog { return tools.NewCatalog(tools.WithRequiredIdentity()) })
}

// A catalog of somebody else has the documented methods and no more.
func TestBareCatalog(t *testing.T) {
	type bare struct{ tools.ToolCatalog }
	toolstest.RunCatalog(t, func() tools.ToolCatalog { return bare{tools.NewCatalog()} })
}
