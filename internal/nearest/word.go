// Package nearest finds the word that a misspelt one most likely means.
package nearest

import "strings"

// longest is the length, in bytes, of the longest word that is compared: the
// work grows with the square of it, and the word may be a stranger's.
const longest = 128

// Word returns the word of known to which word is nearest, the first of them
// when there are more. ok is false when none is near enough, which takes no
// more than one edit for every three bytes of word, or a single one where word
// is shorter, and leaves a part of it. An edit inserts, drops or changes a
// byte, or swaps two neighbours. Case does not count.
func Word(word string, known []string) (best string, ok bool) {
	if len(word) > longest {
		return "", false
	}
	most := min(max(1, len(word)/3), len(word)-1)
	word = strings.ToLower(word)
	for _, k := range known {
		if d := distance(word, strings.ToLower(k), most); d <= most {
			best, ok, most = k, true, d-1
		}
	}
	return best, ok
}

// distance is the number of edits that turn a into b, or any number above most
// where it takes more than that.
func distance(a, b string, most int) int {
	if max(len(a), len(b))-min(len(a), len(b)) > most {
		return most + 1
	}
	above, row, twoAbove := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		least := row[0]
		for j := range len(b) {
			row[j+1] = min(row[j]+1, above[j+1]+1, above[j]+differs(a[i], b[j]))
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], twoAbove[j-1]+1)
			}
			least = min(least, row[j+1])
		}
		if least > most { // and stays so: a swap over a row saves no more than the row cost
			return least
		}
		twoAbove, above, row = above, row, twoAbove
	}
	return above[len(b)]
}

func differs(a, b byte) int {
	if a == b {
		return 0
	}
	return 1
}
