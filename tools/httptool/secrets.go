package httptool

import (
	"slices"
	"strings"
	"sync/atomic"

	"github.com/toolcrib/toolcrib/internal/mask"
)

// publicHeaders are headers whose values need not be hidden.
var publicHeaders = []string{"accept", "accept-language", "accept-encoding", "content-type", "user-agent", "cache-control"}

// secretValues returns the values of headers that nobody is to see, sorted.
func secretValues(headers map[string]string) []string {
	var values []string
	for name, v := range headers {
		if !slices.Contains(publicHeaders, strings.ToLower(name)) {
			values = append(values, v)
		}
	}
	slices.Sort(values)
	return values
}

// masks keeps the mask that was used last: the requests of one source carry
// the same secrets until one is rotated.
type masks struct{ last atomic.Pointer[keptMask] }

type keptMask struct {
	secrets []string
	mask    *mask.Mask
}

func (m *masks) of(secrets []string) *mask.Mask {
	if kept := m.last.Load(); kept != nil && slices.Equal(kept.secrets, secrets) {
		return kept.mask
	}
	kept := &keptMask{slices.Clone(secrets), mask.New(secrets...)}
	m.last.Store(kept)
	return kept.mask
}

// clean returns a text that is shown without the secrets of the request.
func (o *outgoing) clean(text string) string {
	if len(o.hidden) == 0 || text == "" {
		return text
	}
	return o.masks.of(o.hidden).Clean(text)
}
