package demo

import (
	_ "embed" // for the API's document
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed openapi.yaml
var document string

// library is a lending library in memory: the state behind the demonstration's
// HTTP API. It is safe for concurrent use.
type library struct {
	mu    sync.Mutex
	books []book
}

// book is one book as the API shows it.
type book struct {
	ID       int    `json:"id"`
	Title    string `json:"title"`
	Author   string `json:"author"`
	Year     int    `json:"year,omitempty"`
	Borrower string `json:"borrower,omitempty"`
}

func newLibrary() *library {
	return &library{books: []book{
		{ID: 1, Title: "The Left Hand of Darkness", Author: "Ursula K. Le Guin", Year: 1969},
		{ID: 2, Title: "Solaris", Author: "Stanisław Lem", Year: 1961},
		{ID: 3, Title: "Kindred", Author: "Octavia E. Butler", Year: 1979},
		{ID: 4, Title: "The Dispossessed", Author: "Ursula K. Le Guin", Year: 1974},
	}}
}

func (l *library) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /openapi.yaml", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/yaml")
		_, _ = w.Write([]byte(document))
	})
	mux.HandleFunc("GET /books", l.find)
	mux.HandleFunc("POST /books", l.add)
	mux.HandleFunc("GET /books/{id}", l.one(func(*book) string { return "" }))
	mux.HandleFunc("PUT /books/{id}/loan", l.lend)
	mux.HandleFunc("DELETE /books/{id}/loan", l.one(takeBack))
	return mux
}

// find answers with the books whose title or author holds the query.
func (l *library) find(w http.ResponseWriter, r *http.Request) {
	query := strings.ToLower(r.URL.Query().Get("query"))
	available := r.URL.Query().Get("available") == "true"
	l.mu.Lock()
	defer l.mu.Unlock()
	found := []book{}
	for _, b := range l.books {
		text := strings.ToLower(b.Title + "\n" + b.Author)
		if strings.Contains(text, query) && (!available || b.Borrower == "") {
			found = append(found, b)
		}
	}
	answer(w, http.StatusOK, map[string]any{"books": found})
}

func (l *library) add(w http.ResponseWriter, r *http.Request) {
	var b book
	if !read(w, r, &b) {
		return
	}
	if b.Title == "" || b.Author == "" {
		fail(w, http.StatusUnprocessableEntity, "a book has a title and an author")
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b.ID, b.Borrower = len(l.books)+1, ""
	l.books = append(l.books, b)
	answer(w, http.StatusCreated, b)
}

// one answers a request about one book; change returns why it cannot be.
func (l *library) one(change func(*book) (conflict string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id, err := strconv.Atoi(r.PathValue("id"))
		l.mu.Lock()
		defer l.mu.Unlock()
		i := slices.IndexFunc(l.books, func(b book) bool { return b.ID == id })
		if err != nil || i < 0 {
			fail(w, http.StatusNotFound, "there is no such book")
			return
		}
		if conflict := change(&l.books[i]); conflict != "" {
			fail(w, http.StatusConflict, conflict)
			return
		}
		answer(w, http.StatusOK, l.books[i])
	}
}

func (l *library) lend(w http.ResponseWriter, r *http.Request) {
	var loan struct {
		Borrower string `json:"borrower"`
	}
	if !read(w, r, &loan) {
		return
	}
	l.one(func(b *book) string {
		switch {
		case loan.Borrower == "":
			return "a loan has a borrower"
		case b.Borrower != "" && b.Borrower != loan.Borrower:
			return "the book is lent to somebody else"
		}
		b.Borrower = loan.Borrower
		return ""
	})(w, r)
}

func takeBack(b *book) string {
	b.Borrower = ""
	return ""
}

func read(w http.ResponseWriter, r *http.Request, v any) bool {
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(v)
	if err != nil {
		fail(w, http.StatusBadRequest, "the body is not the JSON that is expected")
	}
	return err == nil
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func fail(w http.ResponseWriter, status int, message string) {
	answer(w, status, map[string]string{"error": message})
}
