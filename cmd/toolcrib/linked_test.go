package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/internal/mainpkg"
	"github.com/toolcrib/toolcrib/internal/peertest"
)

// TestUnusedMethodsAreRemoved checks that nothing in the program looks for a
// method by a name that is known only when it runs, as the templates of the
// standard library do. The linker would then keep every exported method of
// every type that is reached, also this one of reflect that nobody calls.
//
// To find the cause: go build -tags grpcnotrace -ldflags=-dumpdep -o FILE
// ./cmd/toolcrib, and look for <ReflectMethod> in what it prints.
func TestUnusedMethodsAreRemoved(t *testing.T) {
	binary := peertest.Build(t, mainpkg.Path)
	out, err := exec.Command("go", "tool", "nm", binary).Output()
	if err != nil {
		t.Fatal(err)
	}
	symbols := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		_, name, _ := strings.Cut(line, " T ")
		symbols[strings.TrimSpace(name)] = true
	}
	if !symbols["main.main"] {
		t.Fatal("the program's symbols cannot be read")
	}
	for _, name := range []string{"text/template.(*state).evalField", "reflect.(*Value).MethodByName"} {
		if symbols[name] {
			t.Errorf("the linker kept %s, and with it all methods", name)
		}
	}
}
