package schema

import (
	"slices"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"
)

// formatTexts are, for each format, texts that have it and texts that do not.
var formatTexts = map[string]struct{ yes, no []string }{
	"date": {[]string{"2024-02-29", "0001-01-01"}, []string{"2023-02-29", "2024-2-9", "2024-01-01T", "2024-13-01", "", "+024-01-01"}},
	"time": {
		[]string{"23:59:60Z", "12:00:00.5z", "15:59:60-08:00", "00:00:00+23:59", "08:59:60.25+09:00"},
		[]string{"12:00:00", "24:00:00Z", "12:60:00Z", "23:58:60Z", "12:00:00.Z", "12:00Z", "12:00:00+1:00", "12:00:00+24:00", "1२:00:00Z", "12:00:61Z"},
	},
	"date-time": {[]string{"1998-12-31T23:59:60Z", "1990-12-31t15:59:59.9+01:00"}, []string{"1990-12-31 15:59:59Z", "1990-02-31T15:59:59Z", "1990-12-31", "1990-12-31T"}},
	"duration":  {[]string{"P1Y2M3D", "PT1H2M", "P2W", "P1YT1S", "P0D", "P1Y3D", "PT36H"}, []string{"P", "PT", "P1", "1D", "P1YT", "P1D2H", "P2D1Y", "P1W2D", "PT1D", "P1.5D", "PW"}},
	"email": {
		[]string{"a@b", "a.b+c@example.com", `"a b\""@example.com`, "a@[127.0.0.1]", "a@[IPv6:::1]"},
		[]string{"", "a", "@b", "a@", ".a@b", "a.@b", "a..b@c", "a b@c", `"a"b"@c`, "a@[127.0.0.300]", "a@[IPv6:x]", "a@b_c", "a@b@c", `"\@c`, `"@c`},
	},
	"hostname": {[]string{"a", "a-b.example", "1.2"}, []string{"", ".", "-a", "a-", "a..b", "a_b", "é", "a b"}},
	"ipv4":     {[]string{"127.0.0.1", "0.0.0.0"}, []string{"127.0.0.01", "1.2.3", "256.0.0.1", "::1", ""}},
	"ipv6":     {[]string{"::", "::ffff:1.2.3.4", "2001:db8::1"}, []string{"::1%eth0", "1.2.3.4", ":::", "12345::", ""}},
	"uuid":     {[]string{"2EB8AA08-aa98-11EA-b4aa-73b441d16380"}, []string{"2eb8aa08aa9811eab4aa73b441d16380", "2eb8aa08-aa98-11ea-b4aa-73b441d1638g", ""}},
	"uri": {
		[]string{"http://a/b?c#d", "urn:a:b", "mailto:a@b", "http://[::1]:8/", "a:", "http://u:p@h:1/%20"},
		[]string{"//a/b", "a", "", "http://a b", "http://[::1", "http://a/%2", `http://a\b`, "http://é/", "http://a[/b", ":a", "1a:b", "http://a:b/"},
	},
	"uri-reference":         {[]string{"", "#", "a/b", "//a", "?q", "../x"}, []string{`\`, "%", "#a#b", "é", "a b", ":"}},
	"iri":                   {[]string{"http://é/ñ?ü", "urn:é"}, []string{"/é", "http://é b", "\\é", "http://2001:db8::1"}},
	"iri-reference":         {[]string{"/é", "#ü"}, []string{"\\", "a\x00"}},
	"uri-template":          {[]string{"/a/{b}", "{?x,y*}", ""}, []string{"/a/{b", "{}", "a}"}},
	"json-pointer":          {[]string{"", "/", "/a~0~1b", "/é"}, []string{"a", "/~", "/~2", "#/a"}},
	"relative-json-pointer": {[]string{"0", "1/a", "20#", "0/"}, []string{"", "-1", "01", "1a", "/a", "0##"}},
	"regex":                 {[]string{"^a$", "(?=a)", `\d`}, []string{"(", "[", `a{2,1}`}},
}

func TestFormats(t *testing.T) {
	for name, texts := range formatTexts {
		f := formatNamed(name)
		for _, text := range texts.yes {
			if !f.valid(text) {
				t.Errorf("%q has not the format %s", text, name)
			}
		}
		for _, text := range texts.no {
			if f.valid(text) {
				t.Errorf("%q has the format %s", text, name)
			}
		}
	}
	if !formatNamed("uri").valid("http://[v1.a:b]/") || formatNamed("uri").valid("http://[v1]/") {
		t.Error("addresses of versions to come")
	}
	if formatNamed("shape") != nil {
		t.Error("a format that nobody knows")
	}
}

// TestFormatsAgree: no text that is nearly right passes when the oracle, which
// is more generous than the RFCs here and there, says that it should not.
func TestFormatsAgree(t *testing.T) {
	var names []string
	for name := range formatTexts {
		switch name {
		case "email", "iri", "iri-reference", "uri-template", "regex": // of which it knows less
		default:
			names = append(names, name)
		}
	}
	slices.Sort(names)
	oracles := map[string]*jsonschema.Schema{}
	for _, name := range names {
		s, err := oracle(encode(map[string]any{"format": name}), &Options{AssertFormat: true})
		if err != nil {
			t.Fatal(err)
		}
		oracles[name] = s
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(names).Draw(t, "format")
		texts := slices.Concat(formatTexts[name].yes, formatTexts[name].no)
		text := []rune(rapid.SampledFrom(texts).Draw(t, "text"))
		if len(text) > 0 && rapid.Bool().Draw(t, "changed") {
			at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
			text[at] = rapid.SampledFrom([]rune("aZ09:/?#[]@-+.~%{}TtzP\"\\ é")).Draw(t, "by")
		}
		want := oracles[name].Validate(string(text)) == nil
		if formatNamed(name).valid(string(text)) && !want {
			t.Fatalf("%q has the format %s, the oracle says that it has not", string(text), name)
		}
	})
}
