package lexicon

import "github.com/kljensen/snowball/english"

// Stem returns the stem of a word in small letters. Words that hold anything but the letters a to z are
// returned as they are.
func Stem(word string) string {
	if len(word) < 3 {
		return word
	}
	for i := range len(word) {
		if word[i] < 'a' || word[i] > 'z' {
			return word
		}
	}
	return english.Stem(word, true)
}
