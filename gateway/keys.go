package gateway

import (
	"reflect"
	"strings"
)

// keys are the keys of a section of the file.
type keys struct {
	names []string // in the order of the struct
	index map[string]int
}

// keysOf returns the keys of a struct type: its fields that carry a yaml tag.
func keysOf(t reflect.Type) keys {
	k := keys{index: map[string]int{}}
	for i := range t.NumField() {
		if name := t.Field(i).Tag.Get("yaml"); name != "" {
			k.names = append(k.names, name)
			k.index[name] = i
		}
	}
	return k
}

// expectedKey names the known word that is nearest to got, or all of them when
// none is near.
func expectedKey(got string, known []string) string {
	if best := nearestName(got, known); best != "" {
		return best
	}
	return oneOf(known)
}

// nearestName is the known word that is near to got, or nothing.
func nearestName(got string, known []string) string {
	best, distance := "", 1+max(1, len(got)/3)
	for _, name := range known {
		if d := editDistance(got, name); d < distance {
			best, distance = name, d
		}
	}
	return best
}

func oneOf(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// editDistance counts the insertions, deletions, substitutions and swaps of
// neighbours that turn a into b. Long words are only compared by length.
func editDistance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return max(len(a), len(b))
	}
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		row, above, twoAbove := rows[i%3], rows[(i-1)%3], rows[(i+1)%3]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(row[j-1]+1, above[j]+1, above[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], twoAbove[j-2]+1)
			}
		}
	}
	return rows[len(a)%3][len(b)]
}
