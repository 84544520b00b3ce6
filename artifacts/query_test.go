package artifacts_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/artifacts"
	"github.com/toolcrib/toolcrib/internal/peertest"
)

const shop = `{"items":[
	{"id":1,"name":"pen","price":1.5,"tags":["a","b"],"big":9007199254740993},
	{"id":2,"name":"ink","price":20,"tags":[]},
	{"id":3,"name":"Box \"x\"","price":7,"tags":["b"]}],
	"owner":{"name":"ada","since":"2030-01-02T03:04:05Z"}, "none":null}`

func TestQuery(t *testing.T) {
	f := newFixture(t, artifacts.Options{})
	info := f.put(t, ada(t), shop, artifacts.Meta{})
	for query, want := range map[string]string{
		`.owner.name`:     `"ada"`,
		`.items[].id`:     "1\n2\n3",
		`.items | length`: "3",
		`.items[] | select(.price > 5) | {id, n: .name}`: `{"id":2,"n":"ink"}` + "\n" + `{"id":3,"n":"Box \"x\""}`,
		`[.items[].tags[]] | unique`:                     `["a","b"]`,
		`.items | map(.price) | add`:                     "28.5",
		`.items[0].big`:                                  "9007199254740993",
		`.items[0].big + 0`:                              "9007199254740993",
		`.items | group_by(.tags | length) | map({n: length, ids: map(.id)}) | .[0]`: `{"ids":[2],"n":1}`,
		`[.items[].name] | join(", ")`:                                                `"pen, ink, Box \"x\""`,
		`[1,null,true,"x"] | join("-")`:                                               `"1--true-x"`,
		`.items[] | select(.name | test("^b"; "i")) | .id`:                            "3",
		`.items[] | "\(.id): \(.name)"`:                                               "\"1: pen\"\n\"2: ink\"\n\"3: Box \\\"x\\\"\"",
		`reduce .items[] as $i (0; . + $i.id)`:                                        "6",
		`[foreach .items[] as {id: $i} (0; . + $i)]`:                                  "[1,3,6]",
		`del(.items[0:2]) | .items | length`:                                          "1",
		`.owner | pick(.name)`:                                                        `{"name":"ada"}`,
		`[paths(type == "number")] | length`:                                          "7",
		`.owner | with_entries(.value |= .) | keys`:                                   "",
		`.owner | with_entries(.key = "x")`:                                           "",
		`.owner | to_entries | map(.key)`:                                             `["name","since"]`,
		`.owner.since | fromdate`:                                                     "1893553445",
		`.items | map_values(.id)`:                                                    "[1,2,3]",
		`[.. | numbers] | max`:                                                        "9007199254740993",
		`[limit(2; .items[].id)]`:                                                     "[1,2]",
		`first(.items[])`:                                                             `{"big":9007199254740993,"id":1,"name":"pen","price":1.5,"tags":["a","b"]}`,
		`.items | sort_by(-.price) | .[0].id`:                                         "2",
		`.items[] | select(.tags | contains(["a"])) | .id`:                            "1",
		`.items[] | select(.tags | index("b")) | .id`:                                 "1\n3",
		`if .none == null then "no" else "yes" end`:                                   `"no"`,
		`.missing // "none"`:                                                          `"none"`,
		`try error("x") catch .`:                                                      `"x"`,
		`[.items[] | .name | ascii_downcase | length]`:                                "[3,3,7]",
		`.items[1:] | map(.id) | @csv`:                                                `"2,3"`,
		`[range(3)] | map(. * 2 - 1)`:                                                 "[-1,1,3]",
		`{a:1} * {b:{c:2}}`:                                                           `{"a":1,"b":{"c":2}}`,
		`.owner as {$name} | $name`:                                                   `"ada"`,
		`.items | any(.id == 2), all(.id > 0)`:                                        "true\ntrue",
		`[.items[].tags | length] | . - [0]`:                                          "[2,1]",
		`walk(if type == "array" then length else . end) | .items`:                    "3",
		`.items | INDEX(.id) | keys`:                                                  `["1","2","3"]`,
		`[.items[] | .price | floor | tostring]`:                                      `["1","20","7"]`,
		`empty`:                                                                       "",
		`-(.items[1].id)`:                                                             "-2",
		`1 | [recurse(if . < 3 then . + 1 else empty end)]`:                           "[1,2,3]",
		`label $out | .items[] | if .id == 2 then ., break $out else empty end | .id`: "2",
	} {
		got := f.fetch(t, artifacts.FetchArgs{Ref: info.Ref, Query: query})
		if got.Content != want || want != "" && got.Error != "" || got.Truncated {
			t.Errorf("%s: %q, %q, want %q", query, got.Content, got.Error, want)
		}
	}
}

func TestQueryRefuses(t *testing.T) {
	f := newFixture(t, artifacts.Options{})
	info := f.put(t, ada(t), shop, artifacts.Meta{})
	for _, query := range []string{`.a |`, `def f: f; f`, `import "a" as a; .`, `include "a"; .`, `env`, `$ENV`, `$ENV.PATH`, `{$ENV}`, `input`, `[inputs]`, `debug`, `stderr`,
		`halt`, `halt_error`, `input_filename`, `$__loc__`, `now | sleep`, `.a = 1`, `.a |= 1`, `.a += 1`, `setpath(["a"]; 1)`, `setpath([1000000000]; 1)`, `fromstream(1)`,
		`del(.[("x" * 9)])`, `path(.a | f)`, `transpose`, `combinations`, `gsub("";"x")`, `sub("a";"b")`, `test(.name)`, `_toolcrib_all`, `getpath(env)`, `modulemeta`, `get_search_list`,
		`.[env]`, `"\(env)"`, `@json "\(env)"`, `{(env): 1}`, `{a: env}`, `[env]`, `-env`, `try env`, `.a?//env`, `if env then 1 else 2 end`, `. as {(env): $x} | $x`,
		`reduce env as $x (0; .)`, `foreach .[] as $x (0; env)`, `label $x | env`, `.[env:]`, `.a[env]`, `.. | env`, `map(env)`, `select(env)`, `first(env)`, strings4097()} {
		if got := f.fetch(t, artifacts.FetchArgs{Ref: info.Ref, Query: query}); got.Error == "" || got.Content != "" {
			t.Errorf("%.40s: %q, want an error", query, got.Content)
		}
	}
}

func strings4097() string { return strings.Repeat(" ", 4096) + "." }

// Nothing that a query can be makes the process large or busy.
func TestQueryIsBounded(t *testing.T) {
	if raced {
		t.Skip("the race detector multiplies time and memory")
	}
	f := newFixture(t, artifacts.Options{QueryTime: 200 * time.Millisecond})
	var items strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&items, `%s{"id":%d,"name":"item %d"}`, map[bool]string{true: ","}[i > 0], i, i)
	}
	large := f.put(t, ada(t), "["+items.String()+"]", artifacts.Meta{})
	deep := strings.Repeat("[.,.]|", 60)
	for _, query := range []string{
		`[range(1e12)]`, `last(range(1e12))`, `[repeat(1)]`, `[limit(1e12; repeat(.))]`, `repeat(empty)`, `[.[] as $a | .[] as $b | [$a, $b]]`, `[.[] as $a | .[] as $b | 1]`,
		`"x" * 1e9`, `1e9 * "x"`, `[range(100)] | map("x" * 1e8)`, `reduce range(100) as $i ("x"; . + .)`, `"x"` + strings.Repeat("|.+.", 900), deep + `tojson`, deep + `tostring`, deep + `flatten`, deep + `.`,
		deep + `"\(.)"`, deep + `@json`, deep + `length`, deep + `[..]`, deep + `. == .`, deep + `unique`, deep + `add`, deep + `map(.)`, `[., .] | tojson`, `. as $d | map($d) | tojson`,
		`. as $d | map($d | tojson)`, `. as $d | map($d) | map(map(.))`, `. - .`, `map(.id) as $a | $a - $a`, `map(.id) | contains([range(100000)])`, `map(.id) | indices([1])`, `map(.name) | join("x")`,
		`reduce range(1e9) as $i (0; . + 1)`, `reduce range(1e6) as $i (.; [.])`, `[foreach range(1e9) as $i ([]; . + [$i])]`, `last(foreach range(1e9) as $i (0; . + 1))`, `until(false; . )`, `[while(true; .)]`,
		`[recurse(.)]`, `[recurse(., .)]`, `walk([., .])`, `map_values([repeat(1)])`, `add(repeat("x"))`, `group_by(repeat(1))`, `{a: range(1e12)} | .a`, `[{(range(1e12) | tostring): 1}]`, `reduce range(1e9) as $i (2; . * .)`,
		`first(range(1e12) | select(. < 0))`, `[.[] | tojson] | [., .] | [., .] | [., .] | [., .] | [., .] | [., .] | tojson`, `try repeat(1) catch 1`, `[try repeat(try error catch .)]`, `isempty(repeat(empty))`,
		`map(.name) | [.[] | split("")] | [.[] as $x | .[] | $x]`, `[splits("a")]`, `.[0].name | [match(""; "g")] | [., .] | map(tojson)`, `[range(1e5)] | map([range(1e5)])`, `[paths]|[paths]|[paths]|[paths]`, `.[1e9]`, `.[-1e9]`, `[.[range(1e9)]]`,
		`pow(10; 1e9)`, `[range(300)] | map(pow(10; .)) | add`, `1e1000000000`, `[.[] | .name | test("(a{500}){500}")]`, `INDEX(range(1e9))`, `any(range(1e12); . < 0)`, `[limit(1e9; .[] | ., . | ., . | ., . | ., . | ., .)]`,
	} {
		began := peertest.Busy()
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		got := f.fetch(t, artifacts.FetchArgs{Ref: large.Ref, Query: query})
		runtime.ReadMemStats(&after)
		grown := int64(after.Sys) - int64(before.Sys)
		if took := peertest.Busy() - began; took > 4*time.Second || grown > 512<<20 || len(got.Content) > 64<<10 {
			t.Errorf("%.60s: %v, %d MB more, %d bytes, %q", query, took, grown>>20, len(got.Content), got.Error)
		}
	}
}

func TestQueryOverValuesInARow(t *testing.T) {
	f := newFixture(t, artifacts.Options{MaxQueryBytes: 64 << 10, QueryTime: time.Minute})
	var rows strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&rows, "{\"i\":%d}\n", i)
	}
	info := f.put(t, ada(t), rows.String(), artifacts.Meta{MIME: "application/x-ndjson"})
	if got := f.fetch(t, artifacts.FetchArgs{Ref: info.Ref, Query: `select(.i % 5000 == 1) | .i`}); got.Content != "1\n5001\n10001\n15001" || got.Results != 4 {
		t.Errorf("%+v", got)
	}
	if got := f.fetch(t, artifacts.FetchArgs{Ref: info.Ref, Query: `.i`, MaxBytes: 8}); got.Content != "0\n1\n2\n3" || !got.Truncated || got.Results != 4 {
		t.Errorf("%+v", got)
	}
	one := f.put(t, ada(t), `["`+strings.Repeat("x", 64<<10)+`"]`, artifacts.Meta{})
	if got := f.fetch(t, artifacts.FetchArgs{Ref: one.Ref, Query: `length`}); !strings.Contains(got.Error, "larger than 65536") {
		t.Errorf("%+v", got)
	}
	broken := f.put(t, ada(t), `{"a":1}{"a":`, artifacts.Meta{MIME: "application/json"})
	if got := f.fetch(t, artifacts.FetchArgs{Ref: broken.Ref, Query: `.a`}); !strings.Contains(got.Error, "not JSON") || got.Content != "" {
		t.Errorf("%+v", got)
	}
	wide := f.put(t, ada(t), `"`+strings.Repeat("日", 1000)+`"`, artifacts.Meta{MIME: "application/json"})
	if got := f.fetch(t, artifacts.FetchArgs{Ref: wide.Ref, Query: `.`, MaxBytes: 11}); got.Content != `"日日日` || !got.Truncated {
		t.Errorf("%+v", got)
	}
}
