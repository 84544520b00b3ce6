package tools

import (
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Snapshot is the state of a catalog at one moment. It never changes and is
// safe for concurrent use.
type Snapshot struct {
	generation uint64
	byName     map[string]*binding
	sorted     []*binding
	scopes     []string // that some tool demands, sorted
	tenants    []string // that some tool is limited to, sorted

	mu      sync.Mutex
	classes map[string]*VisibleSet
}

// maxClasses bounds how many visibility classes a snapshot remembers. A further
// one takes the place of any of them, which is computed again on its next use.
const maxClasses = 256

func newSnapshot(generation uint64, tools map[string]*binding) *Snapshot {
	s := &Snapshot{generation: generation, byName: tools, classes: map[string]*VisibleSet{}}
	s.sorted = slices.SortedFunc(maps.Values(tools), func(a, b *binding) int {
		return strings.Compare(a.tool.Name, b.tool.Name)
	})
	for _, b := range s.sorted {
		s.scopes = append(s.scopes, b.tool.AuthScopes...)
		s.tenants = append(s.tenants, b.tool.Tenants...)
	}
	s.scopes, s.tenants = sortedSet(s.scopes), sortedSet(s.tenants)
	return s
}

// Generation grows with every change of the catalog.
func (s *Snapshot) Generation() uint64 { return s.generation }

// Len returns how many tools the catalog holds, visible or not.
func (s *Snapshot) Len() int { return len(s.sorted) }

// OfKind returns copies of all tools of a kind, also of those that few callers
// see or nobody does. It is for keeping what they stand for from being reached
// in another way, and not for showing them.
func (s *Snapshot) OfKind(kind Kind) []Tool {
	var list []*binding
	for _, b := range s.sorted {
		if b.tool.Kind == kind {
			list = append(list, b)
		}
	}
	return copyTools(list)
}

// Visible returns the tools that filter selects; NameRegex is not applied.
// Filters that select the same tools give the same set.
func (s *Snapshot) Visible(filter CatalogFilter) *VisibleSet {
	class := s.class(&filter)
	s.mu.Lock()
	v := s.classes[class]
	s.mu.Unlock()
	if v != nil {
		return v
	}
	v = s.pick(class, &filter)
	s.mu.Lock()
	defer s.mu.Unlock()
	if have := s.classes[class]; have != nil {
		return have
	}
	if len(s.classes) >= maxClasses {
		for one := range s.classes {
			delete(s.classes, one)
			break
		}
	}
	s.classes[class] = v
	return v
}

// class names what of a filter decides which tools of this snapshot are seen:
// the loading modes, the demanded scopes that are held, the tenant if some tool
// is limited to it, and the part.
func (s *Snapshot) class(f *CatalogFilter) string {
	loading := 0
	if f.loads(LoadingAlways) {
		loading |= 1
	}
	if f.loads(LoadingDeferred) {
		loading |= 2
	}
	if len(s.scopes) == 0 && len(s.tenants) == 0 && f.part == nil {
		return plainClasses[loading]
	}
	var b strings.Builder
	b.WriteString(plainClasses[loading])
	for _, scope := range s.scopes {
		if slices.Contains(f.GrantedScopes, scope) {
			b.WriteByte(' ')
			b.WriteString(strconv.Quote(scope))
		}
	}
	switch _, named := slices.BinarySearch(s.tenants, f.TenantID); {
	case len(s.tenants) > 0 && f.admin():
		b.WriteString(" *")
	case named:
		b.WriteString(" @")
		b.WriteString(strconv.Quote(f.TenantID))
	}
	if f.part != nil {
		b.WriteString(" in ")
		b.WriteString(strconv.Quote(f.part.Class))
	}
	return b.String()
}

var plainClasses = [4]string{"none", "always", "deferred", "all"}

func (s *Snapshot) pick(class string, f *CatalogFilter) *VisibleSet {
	v := &VisibleSet{snapshot: s, class: class, list: make([]*binding, 0, len(s.sorted))}
	for _, b := range s.sorted {
		if !b.hidden && f.loads(b.tool.Loading) && f.permits(&b.tool) {
			v.list = append(v.list, b)
		}
	}
	return v
}

// VisibleSet is the tools of a snapshot that the callers of one visibility
// class see, sorted by name. It never changes and is safe for concurrent use.
type VisibleSet struct {
	snapshot *Snapshot
	class    string
	list     []*binding

	memo sync.Map // key → *memo
}

type memo struct {
	once  sync.Once
	value any
}

// Class names the visibility class. Sets of one snapshot with the same class
// hold the same tools; callers of different classes may see different ones.
func (v *VisibleSet) Class() string { return v.class }

// Generation is that of the snapshot.
func (v *VisibleSet) Generation() uint64 { return v.snapshot.generation }

// Len returns how many tools are visible.
func (v *VisibleSet) Len() int { return len(v.list) }

// Names returns the names, sorted.
func (v *VisibleSet) Names() []string {
	out := make([]string, len(v.list))
	for i, b := range v.list {
		out[i] = b.tool.Name
	}
	return out
}

// Has reports whether a tool of that name is visible.
func (v *VisibleSet) Has(name string) bool {
	_, ok := v.find(name)
	return ok
}

// Index returns the place of the first name that is not before name.
func (v *VisibleSet) Index(name string) int {
	i, _ := v.find(name)
	return i
}

func (v *VisibleSet) find(name string) (int, bool) {
	return slices.BinarySearchFunc(v.list, name, func(b *binding, n string) int {
		return strings.Compare(b.tool.Name, n)
	})
}

// Ref returns the tool of that name itself, which must not be changed, or nil.
func (v *VisibleSet) Ref(name string) *Tool {
	if i, ok := v.find(name); ok {
		return &v.list[i].tool
	}
	return nil
}

// Get returns a copy of the tool of that name, if it is visible.
func (v *VisibleSet) Get(name string) (t Tool, found bool) {
	i, ok := v.find(name)
	if !ok {
		return t, false
	}
	v.list[i].copyTool(&t)
	return t, true
}

// Edition identifies one registration of a tool, so that what is derived from a
// tool can be kept for as long as the tool stays as it is. Editions are equal
// when they stand for the same, unchanged registration in the same catalog. It
// holds no copy of the tool.
type Edition struct{ of *binding }

// Name is the tool's canonical name. That of the zero Edition is empty.
func (e Edition) Name() string {
	if e.of == nil {
		return ""
	}
	return e.of.tool.Name
}

// Edition returns the edition of the tool at place i, counted from 0 in the
// order of Names.
func (v *VisibleSet) Edition(i int) Edition { return Edition{v.list[i]} }

// All yields all the tools, sorted by name, without copying them. They are the
// catalog's own and must not be changed: it is for those who encode or count.
func (v *VisibleSet) All() iter.Seq[*Tool] {
	return func(yield func(*Tool) bool) {
		for _, b := range v.list {
			if !yield(&b.tool) {
				return
			}
		}
	}
}

// Tools returns copies of all the tools.
func (v *VisibleSet) Tools() []Tool { return copyTools(v.list) }

// Page returns copies of up to limit tools from offset on.
func (v *VisibleSet) Page(offset, limit int) []Tool {
	offset = min(max(offset, 0), len(v.list))
	return copyTools(v.list[offset : offset+min(max(limit, 0), len(v.list)-offset)])
}

// Memo returns what build gives, computed once for this set and key, so that
// something derived from the set, such as its encoding, lives as long as the
// set. build must not use the set's Memo with the same key.
func (v *VisibleSet) Memo(key any, build func() any) any {
	m, ok := v.memo.Load(key)
	if !ok {
		m, _ = v.memo.LoadOrStore(key, new(memo))
	}
	entry := m.(*memo)
	entry.once.Do(func() { entry.value = build() })
	return entry.value
}
