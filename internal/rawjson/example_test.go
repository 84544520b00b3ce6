package rawjson_test

import (
	"fmt"

	"github.com/toolcrib/toolcrib/internal/rawjson"
)

func ExampleSet() {
	doc, err := rawjson.Set([]byte(`{ "id": 9007199254740993, "tags": [ ] }`), "id", []byte(`"x"`))
	fmt.Println(string(doc), err)
	// Output:
	// { "id": "x", "tags": [ ] } <nil>
}

func ExampleObject() {
	it := rawjson.Object([]byte(`{"a": 1.50, "b": [true]}`))
	for it.Next() {
		fmt.Printf("%s is %s\n", it.Key(), it.Value())
	}
	fmt.Println(it.Err())
	// Output:
	// a is 1.50
	// b is [true]
	// <nil>
}
