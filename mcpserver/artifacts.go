package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"strings"

	"github.com/toolcrib/toolcrib/artifacts"
	"github.com/toolcrib/toolcrib/internal/mcpwire"
	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
	"github.com/toolcrib/toolcrib/view"
)

// Members of the _meta of a read artifact, when more of it follows.
const (
	metaNextOffset = "toolcrib/next_offset"
	metaSize       = "toolcrib/size_bytes"
)

// bound makes a result as small as the client's model takes it.
func (s *Server) bound(ctx context.Context, name string, res *tools.ToolResult) error {
	if s.opts.Bounder == nil {
		return nil
	}
	tool, ok := view.From(ctx, s.cat).Tool(name)
	if !ok {
		tool.Name = name
	}
	small, err := s.opts.Bounder.Bound(ctx, &tool, *res)
	if err != nil {
		return err
	}
	*res = small
	standIn(&tool, res)
	if len(res.Artifacts) > 0 && s.opts.Artifacts != nil {
		link(res)
	}
	return nil
}

// link adds a link to each of the result's artifacts, for clients that read
// resources.
func link(res *tools.ToolResult) {
	res.Wire = nil
	content := append([]tools.Content(nil), res.Content...)
	for _, a := range res.Artifacts {
		content = append(content, a.Link())
	}
	res.Content = content
}

// artifactURI reads the URI of an artifact, whose query may say from which byte on
// to read, and how many bytes. It is false for a URI of anything else.
func artifactURI(uri string) (args artifacts.FetchArgs, ok bool, err error) {
	rest, ok := strings.CutPrefix(uri, tools.ArtifactScheme+artifacts.RefPrefix)
	if !ok {
		return args, false, nil
	}
	ref, query, _ := strings.Cut(rest, "?")
	args.Ref, args.MaxBytes = artifacts.RefPrefix+ref, artifacts.MaxFetchBytes
	values, err := url.ParseQuery(query)
	if err != nil {
		return args, true, mcpwire.Errorf(mcpwire.CodeInvalidParams, "the query of the URI cannot be read: expected offset and length")
	}
	for key := range values {
		n, err := strconv.ParseInt(values.Get(key), 10, 64)
		switch {
		case err != nil || n < 0 || key != "offset" && key != "length":
			return args, true, mcpwire.Errorf(mcpwire.CodeInvalidParams, "the query of the URI: expected offset and length, numbers of bytes")
		case key == "offset":
			args.Offset = n
		case n > 0 && n < artifacts.MaxFetchBytes:
			args.MaxBytes = int(n)
		}
	}
	return args, true, nil
}

// readArtifact answers resources/read of an artifact: as much as one answer of
// artifact_fetch may hold, and where to go on.
func (s *Server) readArtifact(ctx context.Context, r *mcpwire.Request, uri string, args artifacts.FetchArgs) (json.RawMessage, error) {
	kept := s.opts.Artifacts
	info, err := kept.Stat(ctx, args.Ref)
	if errors.Is(err, artifacts.ErrNotFound) {
		return nil, resourceNotFound(r, uri)
	}
	if err != nil {
		return nil, nativeFailure(ctx, err)
	}
	part, err := kept.Fetch(ctx, args)
	switch {
	case err != nil:
		return nil, nativeFailure(ctx, err)
	case part.Error != "":
		return nil, mcpwire.Errorf(mcpwire.CodeInvalidParams, "%s", part.Error)
	}
	result := readPart(uri, &info, &part)
	if r.Session.Era() == mcpwire.EraStateful {
		return result, nil
	}
	return withCaching(result, true)
}

func readPart(uri string, info *artifacts.Info, part *artifacts.FetchResult) json.RawMessage {
	out := rawjson.AppendQuoted([]byte(`{"contents":[{"uri":`), uri)
	out = rawjson.AppendQuoted(append(out, `,"mimeType":`...), info.MIME)
	key := `,"text":`
	if part.Encoding != "" {
		key = `,"blob":`
	}
	out = rawjson.AppendQuoted(append(out, key...), part.Content)
	if part.Truncated {
		out = append(out, `,"_meta":{"`+metaNextOffset+`":`...)
		out = strconv.AppendInt(out, part.NextOffset, 10)
		out = strconv.AppendInt(append(out, `,"`+metaSize+`":`...), info.SizeBytes, 10)
		out = append(out, '}')
	}
	return append(out, `}]}`...)
}
