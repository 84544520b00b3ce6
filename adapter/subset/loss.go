package subset

import "strings"

// Loss is one thing of a schema that a provider's form does not enforce.
type Loss struct {
	// Path is the JSON Pointer of the place in the original schema.
	Path string
	// Feature is the keyword, or what the matter is about.
	Feature string
	// Reason says why it is lost, and what stands in its place.
	Reason string
}

// losses collects each loss once.
type losses struct {
	list []Loss
	seen map[Loss]bool
}

func (l *losses) add(path, feature, reason string) {
	loss := Loss{Path: path, Feature: feature, Reason: reason}
	if l.seen[loss] {
		return
	}
	if l.seen == nil {
		l.seen = map[Loss]bool{}
	}
	l.seen[loss] = true
	l.list = append(l.list, loss)
}

// A note is a sentence for the description of a schema.
type notes []string

func (n *notes) add(text string) {
	for _, have := range *n {
		if have == text {
			return
		}
	}
	*n = append(*n, text)
}

// below returns the description with the notes after it.
func (n notes) below(description string) string {
	description = strings.TrimSpace(description)
	if len(n) == 0 {
		return description
	}
	text := strings.Join(n, " ")
	switch {
	case description == "":
		return text
	case strings.HasSuffix(description, ".") || strings.HasSuffix(description, "\n"):
		return description + " " + text
	}
	return description + ". " + text
}
