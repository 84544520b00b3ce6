package main

func Example() {
	main()
	// Output:
	// [library.search] 1 0
	// Middlemarch: due in 21 days
	// {"answer":"due in 21 days","book":"Middlemarch"}
	// {"answer":"place 3","book":"Emma"}
}
