package storetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/toolcrib/toolcrib/store"
)

func testLogs(t *testing.T, f *fixture) {
	s, log := f.store, key("log")
	if e, err := s.Extent(t.Context(), log); err != nil || e != (store.Extent{First: 1, Next: 1}) {
		t.Fatalf("Extent of nothing = %+v, %v", e, err)
	}
	if entries, err := s.Read(t.Context(), log, 1, 10); err != nil || len(entries) != 0 {
		t.Fatalf("Read of nothing = %v, %v", entries, err)
	}
	start := f.clock.Now()
	if first, err := s.Append(t.Context(), log, []byte("1"), []byte("2")); err != nil || first != 1 {
		t.Fatalf("Append = %d, %v", first, err)
	}
	f.clock.Advance(time.Second)
	if first, err := s.Append(t.Context(), log, []byte("3")); err != nil || first != 3 {
		t.Fatalf("Append = %d, %v", first, err)
	}
	for _, c := range []struct {
		from  store.Offset
		limit int
		want  string
	}{{0, 0, "123"}, {1, 2, "12"}, {2, 10, "23"}, {3, 1, "3"}, {4, 10, ""}, {-5, 1, "1"}, {1000, 1, ""}} {
		entries, err := s.Read(t.Context(), log, c.from, c.limit)
		got := ""
		for _, e := range entries {
			got += string(e.Data)
			if fmt.Sprint(e.Offset) != string(e.Data) {
				t.Errorf("entry %s has offset %d", e.Data, e.Offset)
			}
		}
		if err != nil || got != c.want {
			t.Errorf("Read(%d, %d) = %q, %v, want %q", c.from, c.limit, got, err, c.want)
		}
	}
	entries, err := s.Read(t.Context(), log, 2, 2)
	if err != nil || len(entries) != 2 || !entries[0].Time.Equal(start) || !entries[1].Time.Equal(start.Add(time.Second)) {
		t.Errorf("times = %v, %v", entries, err)
	}
}

func testLogTrim(t *testing.T, f *fixture) {
	s, log := f.store, key("log")
	if err := s.Trim(t.Context(), log, 10); err != nil {
		t.Errorf("Trim of nothing = %v", err)
	}
	if _, err := s.Append(t.Context(), log, []byte("1"), []byte("2"), []byte("3")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		before, first store.Offset
	}{{0, 1}, {2, 2}, {1, 2}, {100, 4}} {
		if err := s.Trim(t.Context(), log, c.before); err != nil {
			t.Fatal(err)
		}
		if e, err := s.Extent(t.Context(), log); err != nil || e != (store.Extent{First: c.first, Next: 4}) {
			t.Errorf("after Trim(%d): %+v, %v", c.before, e, err)
		}
		entries, err := s.Read(t.Context(), log, 1, 0)
		if err != nil || len(entries) != int(4-c.first) || len(entries) > 0 && entries[0].Offset != c.first {
			t.Errorf("after Trim(%d): %v, %v", c.before, entries, err)
		}
	}
	if first, err := s.Append(t.Context(), log, []byte("4")); err != nil || first != 4 {
		t.Errorf("Append after Trim = %d, %v", first, err)
	}
}

func testLogHasNoHoles(t *testing.T, f *fixture) {
	const writers, each = 6, 25
	log := key("log")
	done := make(chan struct{})
	var reader, wg sync.WaitGroup
	reader.Go(func() { followLog(t, f.store, log, writers*each, done) })
	for w := range writers {
		wg.Go(func() {
			for range each {
				if _, err := f.store.Append(t.Context(), log, []byte{byte(w)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	close(done)
	reader.Wait()
}

// followLog reads a log that grows, and demands that no entry is skipped.
func followLog(t *testing.T, s store.Logs, log store.Key, total int, done <-chan struct{}) {
	next := store.Offset(1)
	for last := false; ; {
		select {
		case <-done:
			last = true
		default:
		}
		entries, err := s.Read(t.Context(), log, next, 7)
		if err != nil {
			t.Error(err)
			return
		}
		for _, e := range entries {
			if e.Offset != next {
				t.Errorf("offset %d after %d", e.Offset, next-1)
				return
			}
			next++
		}
		if last && len(entries) == 0 {
			break
		}
	}
	if int(next-1) != total {
		t.Errorf("read %d entries, want %d", next-1, total)
	}
}
