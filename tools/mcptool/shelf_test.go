package mcptool

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/toolcrib/toolcrib/internal/rawjson"
	"github.com/toolcrib/toolcrib/tools"
)

// shelved is a server whose templates and reader could reach its resources.
func shelved(t *testing.T, exclude ...string) map[string]tools.ToolDescriptor {
	t.Helper()
	cfg := childConfig(t, "")
	cfg.Exclude = exclude
	s := start(t, cfg)
	found, _ := s.describeAll([]*entryList{
		listOfKind(tools.KindResource, `{"uri":"file:///secret.txt","name":"secret"}`, `{"uri":"mem://hid","name":"hid"}`),
		listOfKind(tools.KindResourceTemplate, `{"uriTemplate":"file:///{+path}","name":"files"}`, `{"uriTemplate":"db://{+rest}","name":"all"}`,
			`{"uriTemplate":"db://secret/{id}","name":"dbs"}`, `{"uriTemplate":"odd{","name":"odd"}`),
	})
	out := map[string]tools.ToolDescriptor{}
	for _, d := range found {
		out[strings.TrimPrefix(d.Tool.Name, "odd_")] = d
	}
	return out
}

func TestNoToolReadsForAnother(t *testing.T) {
	t.Parallel()
	for _, exclude := range [][]string{nil, {"resource_secret", "resource_hid", "resource_template_dbs"}} {
		found := shelved(t, exclude...)
		for tool, uris := range map[string][]string{
			"resource_template_files": {"file:///secret.txt", "file:///./secret.txt", "file:///a/../secret.txt", "file:///secret%2Etxt", "file:////secret.txt"},
			"resource_template_all":   {"db://secret/1", "db://secret/%31", "db://secret/./1", "db://SECRET/1"},
			"resource_template_odd":   {"mem://hid", "MEM://hid", "db://secret/1"},
			"read_resource": {"mem://hid", "MEM://hid", "MEM://HID", "mem://hid#x", "mem://hid?", "mem://hid/", "mem://h%69d", "FILE:///secret.txt",
				"db://secret/1", "DB://secret/1", "db://secret/a/b", "DB://secret/a%20b", "db://secret/1?x"},
		} {
			for _, uri := range uris {
				err := found[tool].Validate(uriParams(uri))
				if err == nil || err.Error() != errNoResource().Error() {
					t.Errorf("%s %s: %v", tool, uri, err)
				}
			}
		}
		for tool, uri := range map[string]string{"resource_template_files": "file:///a/b.txt", "resource_template_all": "db://other/1",
			"resource_template_odd": "odd:x", "read_resource": "mem://other"} {
			if err := found[tool].Validate(uriParams(uri)); err != nil {
				t.Errorf("%s %s: %v", tool, uri, err)
			}
		}
		if dbs, ok := found["resource_template_dbs"]; ok && dbs.Validate(uriParams("db://secret/1")) != nil {
			t.Error("the template that is more particular does not read its own")
		}
	}
}

// What is not there is refused in the words of what is for another tool.
func TestMissingResourceReadsLikeARefusedOne(t *testing.T) {
	cat := catalogOf(t, start(t, &Config{Name: "lib", URL: serveHTTP(t, newLibrary(), false)}))
	var said []string
	for _, uri := range []string{"lib://a", "LIB://a", "lib://nowhere"} {
		_, err := tools.Invoke(t.Context(), cat, "lib_read_resource", uriParams(uri))
		if err == nil {
			t.Fatal(uri)
		}
		said = append(said, err.Error())
	}
	if said[0] != said[1] || said[1] != said[2] {
		t.Errorf("%q", said)
	}
}

func TestUpdatesAreOfTheSubscribedResource(t *testing.T) {
	t.Parallel()
	var s subscriptions
	var heard []string
	for _, uri := range []string{"mem:", "mem://", "mem://hid", "MEM://a/b", "mem://a/", "file:///"} {
		s.add(uri, &subscriber{func(params json.RawMessage) {
			raw, _ := rawjson.Get(params, "uri")
			heard = append(heard, uri+" hears "+string(raw))
		}})
	}
	for uri, want := range map[string][]string{
		"mem://hid":          {`mem://hid hears "mem://hid"`},
		"mem://a/b":          {`MEM://a/b hears "mem://a/b"`, `mem://a/ hears "mem://a/b"`},
		"mem://hidden":       nil,
		"file:///secret.txt": nil,
	} {
		heard = nil
		s.tell(uriParams(uri))
		slices.Sort(heard)
		if !slices.Equal(heard, want) {
			t.Errorf("%s: %q", uri, heard)
		}
	}
}
