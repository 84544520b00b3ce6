package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// build is what the Go toolchain recorded about this binary.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func readBuild() build {
	b := build{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// buildVersion is what the program calls itself towards others.
func buildVersion() string { return readBuild().Version }

func versionLine() string {
	b := readBuild()
	line := "toolcrib " + b.Version
	if b.Revision != "" {
		line += " " + b.Revision
	}
	if b.Modified {
		line += " modified"
	}
	return line + " " + b.Go + " " + b.Platform
}

func (a *app) versionCommand() *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  arity(0, 0),
		RunE: func(*cobra.Command, []string) error {
			if err := o.check(); err != nil {
				return err
			}
			if o.json() {
				return writeJSON(a.out, readBuild())
			}
			return a.printVersion()
		},
	}
	o.addFlag(cmd)
	return cmd
}

func (a *app) printVersion() error {
	_, err := fmt.Fprintln(a.out, versionLine())
	return err
}
