package main

func Example() {
	main()
	// Output:
	// {"words":1} <nil>
	//  tools: invalid arguments: "text.count": unexpected property "txt"; missing required property "text"
}
