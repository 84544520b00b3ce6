package auth

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"golang.org/x/net/html"
)

// TestPagesHoldTexts checks that whatever a title or a text says, a page has
// the elements that it always has, and shows it.
func TestPagesHoldTexts(t *testing.T) {
	want := []string{"html", "head", "meta", "title", "style", "body", "h1", "p"}
	for _, hostile := range []string{
		"plain", "</title><script>alert(1)</script>", "</h1></p></body><img src=x onerror=alert(1)>", `"><b a='x'>`, "' onload='x",
		"<!--", "]]>", "&lt;b&gt;", "&amp;", "%s %[1]s %d", "é\u2028<\u00a0>", "{{.}}", "<sty\u200ble>", "</style><p>",
	} {
		w := httptest.NewRecorder()
		show(w, http.StatusOK, hostile, "text "+hostile)
		doc, err := html.Parse(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		var elements []string
		texts := map[string]string{}
		for n := range doc.Descendants() {
			switch {
			case n.Type == html.ElementNode:
				elements = append(elements, n.Data)
			case n.Type == html.TextNode && n.Parent.Type == html.ElementNode:
				texts[n.Parent.Data] += n.Data
			case n.Type == html.CommentNode:
				t.Errorf("%q made a comment", hostile)
			}
		}
		if !slices.Equal(elements, want) {
			t.Errorf("%q made %v", hostile, elements)
		}
		if texts["title"] != hostile+" · Toolcrib" || texts["h1"] != hostile || texts["p"] != "text "+hostile {
			t.Errorf("%q is shown as %q", hostile, texts)
		}
	}
}
