package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolcrib/toolcrib/api"
	"github.com/toolcrib/toolcrib/artifacts"
)

func (a *app) artifactsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "artifacts",
		Short: "List, read, keep and remove large results",
		Long: `List, read, keep and remove large results and uploaded files. They belong to the
session in which they were made: --session names it, as a client of MCP does with
the header ` + api.SessionHeader + `.`,
		Args: cobra.ArbitraryArgs,
		RunE: noCommand,
	}
	cmd.AddCommand(a.artifactsList(), a.artifactsGet(), a.artifactsRemove(), a.artifactsPut())
	return cmd
}

// artifactFlags are the flags of every command about artifacts.
type artifactFlags struct {
	target
	output
}

func (f *artifactFlags) add(cmd *cobra.Command) *cobra.Command {
	f.addFlags(cmd)
	f.addFlag(cmd)
	cmd.Flags().StringVar(&f.session, "session", "", "name of the session whose artifacts they are")
	return cmd
}

func (a *app) artifactsList() *cobra.Command {
	var (
		f     artifactFlags
		limit int
	)
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List artifacts",
		Long:  "List the artifacts of a session." + targetHelp,
		Args:  arity(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return usageError{fmt.Errorf("--limit %d: expected a number that is not negative", limit)}
			}
			return a.ask(cmd.Context(), &f.target, &f.output, noTool, func(s *session) error { return a.listArtifacts(s, &f.output, limit) })
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 0, "how many to show (default all)")
	return f.add(cmd)
}

// noTool is the name to wait for of a command that needs none: no source brings
// it.
const noTool = "\x00"

func (a *app) listArtifacts(s *session, o *output, limit int) error {
	found := api.ArtifactsResponse{Artifacts: []artifacts.Info{}}
	var req api.ArtifactsRequest
	for more := true; more && (limit <= 0 || len(found.Artifacts) < limit); {
		page, err := s.ListArtifacts(s.ctx, req)
		if err != nil {
			return s.failure(err)
		}
		found.Artifacts = append(found.Artifacts, page.Artifacts...)
		if more = page.More && len(page.Artifacts) > 0; more {
			req.After = page.Artifacts[len(page.Artifacts)-1].Ref
		}
		found.More = page.More
	}
	if limit > 0 && len(found.Artifacts) > limit {
		found.Artifacts, found.More = found.Artifacts[:limit], true
	}
	if o.json() {
		return writeJSON(a.out, found)
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "REF\tSIZE\tTYPE\tTOOL\tNAME\tCREATED")
	for _, i := range found.Artifacts {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\n", i.Ref, i.SizeBytes, cell(i.MIME), cell(i.Tool), cell(i.Name), i.Created.Format(time.RFC3339))
	}
	return w.Flush()
}

// cell is a text in a row of a table.
func cell(text string) string {
	return orDash(strings.NewReplacer("\n", "", "\t", "").Replace(printable(text)))
}

func (a *app) artifactsGet() *cobra.Command {
	var (
		f  artifactFlags
		to string
	)
	cmd := &cobra.Command{
		Use:   "get REF",
		Short: "Read an artifact",
		Long:  "Write the content of an artifact to stdout, or to a new file; with -o json, what is known about it." + targetHelp,
		Args:  arity(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.ask(cmd.Context(), &f.target, &f.output, noTool, func(s *session) error { return a.getArtifact(s, &f.output, args[0], to) })
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "file to write, which must not be there yet")
	_ = cmd.MarkFlagFilename("to")
	return f.add(cmd)
}

func (a *app) getArtifact(s *session, o *output, ref, to string) error {
	if o.json() && to == "" {
		info, err := s.GetArtifact(s.ctx, ref)
		if err != nil {
			return s.failure(err)
		}
		return writeJSON(a.out, info)
	}
	content, info, err := s.OpenArtifact(s.ctx, ref)
	if err != nil {
		return s.failure(err)
	}
	defer content.Close()
	if to == "" {
		_, err := io.Copy(a.out, content)
		return err
	}
	if err := save(to, content); err != nil {
		return err
	}
	if o.json() {
		return writeJSON(a.out, info)
	}
	return nil
}

// save writes a new file, and leaves none behind that is not complete.
func save(name string, content io.Reader) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

func (a *app) artifactsRemove() *cobra.Command {
	var f artifactFlags
	cmd := &cobra.Command{
		Use:   "rm REF...",
		Short: "Remove artifacts",
		Long:  "Remove artifacts. The first that cannot be removed ends the command." + targetHelp,
		Args:  arity(1, 1000),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.ask(cmd.Context(), &f.target, &f.output, noTool, func(s *session) error { return a.removeArtifacts(s, &f.output, args) })
		},
	}
	return f.add(cmd)
}

func (a *app) removeArtifacts(s *session, o *output, refs []string) error {
	removed := []api.Deleted{}
	for _, ref := range refs {
		d, err := s.DeleteArtifact(s.ctx, ref)
		if err != nil {
			return s.failure(err)
		}
		removed = append(removed, *d)
	}
	if o.json() {
		return writeJSON(a.out, map[string]any{"deleted": removed})
	}
	return nil
}

func (a *app) artifactsPut() *cobra.Command {
	var (
		f          artifactFlags
		name, mime string
	)
	cmd := &cobra.Command{
		Use:   "put FILE | -",
		Short: "Keep a file as an artifact",
		Long:  "Keep a file, or stdin with -, as an artifact of a session, and print its reference." + targetHelp,
		Args:  arity(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.ask(cmd.Context(), &f.target, &f.output, noTool, func(s *session) error {
				return a.putArtifact(s, &f.output, args[0], artifacts.Meta{Name: name, MIME: mime})
			})
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "file name to keep it under (default that of the file)")
	cmd.Flags().StringVar(&mime, "type", "", "media type (default what the content tells)")
	return f.add(cmd)
}

func (a *app) putArtifact(s *session, o *output, file string, meta artifacts.Meta) error {
	if s.passing {
		return usageError{errors.New(nothingKept)}
	}
	content := a.in
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		if content = f; meta.Name == "" {
			meta.Name = filepath.Base(file)
		}
	}
	info, err := s.PutArtifact(s.ctx, content, meta.Name, meta.MIME)
	if err != nil {
		return s.failure(err)
	}
	if o.json() {
		return writeJSON(a.out, info)
	}
	_, err = fmt.Fprintln(a.out, info.Ref)
	return err
}
