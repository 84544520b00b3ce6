package mcpwire

import "testing"

func TestNormalURI(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{
		"MEM://Hid#x":               "mem://hid",
		"mem://hid?":                "mem://hid",
		"mem://hid?a=%41":           "mem://hid?a=A",
		"file:///./a/../secret.txt": "file:///secret.txt",
		"file:///secret%2etxt":      "file:///secret.txt",
		"file:///a%2fb":             "file:///a%2Fb",
		"file:///a/./":              "file:///a/",
		"file:///a%":                "file:///a%",
		"urn:A:b":                   "urn:A:b",
		"":                          "",
		"no uri":                    "no uri",
	} {
		if got := NormalURI(uri); got != want {
			t.Errorf("%s: %s, want %s", uri, got, want)
		}
	}
}

func TestResourceKeyIsTheSameForEverySpelling(t *testing.T) {
	t.Parallel()
	want := ResourceKey("file:///a/secret.txt")
	for _, uri := range []string{"FILE:///a/secret.txt", "file:///a%2Fsecret.txt", "file:////a//secret.txt", "file://localhost/a/secret.txt",
		"file:///b/../a/secret%2Etxt?", "file:///a/secret.txt#", "file:///b%2f..%2Fa/secret.txt"} {
		if got := ResourceKey(uri); got != want {
			t.Errorf("%s: %s", uri, got)
		}
	}
	if ResourceKey("mem://hid/") != ResourceKey("mem://hid") || ResourceKey("mem://hid?x") == ResourceKey("mem://hid") {
		t.Error("a slash after the host says nothing, and a query does")
	}
}

func FuzzNormalURI(f *testing.F) {
	f.Add("file:///a/../b%2e?#")
	f.Fuzz(func(t *testing.T, uri string) {
		NormalURI(uri)
		ResourceKey(uri)
	})
}
