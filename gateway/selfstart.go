package gateway

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// DefaultConfigFile is what the program reads without a flag, in the folder that
// it is started in.
const DefaultConfigFile = "toolcrib.yaml"

// startsItself reports whether a command starts this program with the
// configuration that it stands in: each child would start another.
func (c *Config) startsItself(command []string) bool {
	if c.file == "" || len(command) < 2 || !slices.ContainsFunc(command[1:], func(arg string) bool { return arg == "mcp" || arg == "serve" }) {
		return false
	}
	return c.isThisProgram(command[0]) && sameFile(c.configOf(command[1:]), filepath.Join(c.dir, filepath.Base(c.file)))
}

func (c *Config) isThisProgram(command string) bool {
	self, err := os.Executable()
	if err != nil {
		return false
	}
	if strings.ContainsRune(command, filepath.Separator) {
		return sameFile(absolute(c.dir, command), self)
	}
	path, err := exec.LookPath(command)
	return err == nil && sameFile(path, self)
}

// configOf is the configuration that the program reads for its arguments, when
// it is started as a source of this configuration.
func (c *Config) configOf(args []string) string {
	for i, arg := range args {
		name, value, joined := strings.Cut(arg, "=")
		switch {
		case name != "-c" && name != "--config":
		case joined:
			return absolute(c.dir, value)
		case i+1 < len(args):
			return absolute(c.dir, args[i+1])
		}
	}
	return filepath.Join(c.dir, DefaultConfigFile)
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}
