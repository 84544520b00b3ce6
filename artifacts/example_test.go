package artifacts_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gocloud.dev/blob/memblob"

	"github.com/toolcrib/toolcrib/artifacts"
	"github.com/toolcrib/toolcrib/identity"
	"github.com/toolcrib/toolcrib/store/sqlstore"
	"github.com/toolcrib/toolcrib/tools"
)

func Example() {
	ctx := context.Background()
	records, err := sqlstore.OpenMemory(ctx, nil)
	if err != nil {
		panic(err)
	}
	defer records.Close()
	bucket := memblob.OpenBucket(nil)
	defer bucket.Close()
	kept := artifacts.New(bucket, records, nil)

	ada := identity.With(ctx, identity.Identity{TenantID: "acme", UserID: "ada", SessionID: "s1"})
	info, err := kept.Put(ada, strings.NewReader(`{"orders":[{"id":1,"state":"open"},{"id":2,"state":"shipped"}]}`), artifacts.Meta{})
	if err != nil {
		panic(err)
	}
	fmt.Println(info.MIME, info.SizeBytes)

	part, err := kept.Fetch(ada, artifacts.FetchArgs{Ref: info.Ref, Query: `.orders[] | select(.state == "open") | .id`})
	if err != nil {
		panic(err)
	}
	fmt.Println(part.Content)

	bob := identity.With(ctx, identity.Identity{TenantID: "acme", UserID: "bob", SessionID: "s1"})
	_, err = kept.Stat(bob, info.Ref)
	fmt.Println(errors.Is(err, artifacts.ErrNotFound))
	// Output:
	// application/json 63
	// 1
	// true
}

func ExampleBounder_Bound() {
	ctx := context.Background()
	records, err := sqlstore.OpenMemory(ctx, nil)
	if err != nil {
		panic(err)
	}
	defer records.Close()
	bucket := memblob.OpenBucket(nil)
	defer bucket.Close()
	bounder := artifacts.New(bucket, records, nil).Bounder(&artifacts.Bounds{Preview: 100})

	ada := identity.With(ctx, identity.Identity{TenantID: "acme", UserID: "ada", SessionID: "s1"})
	heavy := `{"count":9000,"rows":[` + strings.Repeat(`{"id":7},`, 8999) + `{"id":8}]}`
	small, err := bounder.Bound(ada, &tools.Tool{Name: "rows.list"}, tools.ToolResult{Structured: []byte(heavy)})
	if err != nil {
		panic(err)
	}
	preview, _, _ := strings.Cut(small.Text(), "\n")
	fmt.Println(preview)
	fmt.Println(small.Artifacts[0].SizeBytes == int64(len(heavy)))
	// Output:
	// {"count":9000,"rows":[{"id":7},{"id":7},{"id":7},{"id":7},{"id":7},"… 8995 more of 9000"]}
	// true
}
