package api_test

import (
	"context"
	"testing"

	"github.com/toolcrib/toolcrib/api"
)

// searching finds what the caller may not see as well, which must not get out.
func searching(_ context.Context, req api.SearchRequest) (*api.SearchResponse, error) {
	return &api.SearchResponse{Matched: 3, Repairs: []api.Repair{{From: "ehco", To: "echo"}}, Tools: []api.SearchHit{
		{Summary: api.Summary{Name: "secret"}, Score: 1}, {Summary: api.Summary{Name: "echo"}, Score: 0.5, Weak: req.Limit == 1},
	}}, nil
}

func TestSearch(t *testing.T) {
	client := clientOf(t, as(t, api.Options{Search: searching}).URL)
	got, err := client.Search(t.Context(), api.SearchRequest{Query: "ehco", Limit: 1})
	if err != nil || got.Count != 1 || len(got.Tools) != 1 || got.Tools[0].Name != "echo" || got.Tools[0].ID != "echo" ||
		got.Tools[0].Transport == "" || !got.Tools[0].Weak || got.Tools[0].Score != 0.5 || len(got.Repairs) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []api.SearchRequest{{}, {Query: "x", Limit: 201}, {Query: "x", Limit: -1}} {
		_, err := client.Search(t.Context(), bad)
		wantCode(t, err, api.CodeInvalidRequest)
	}
	_, err = clientOf(t, as(t, api.Options{}).URL).Search(t.Context(), api.SearchRequest{Query: "x"})
	wantCode(t, err, api.CodeUnknownMethod)
}
