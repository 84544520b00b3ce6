package main

import (
	"cmp"
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/toolcrib/toolcrib/tools/search/lexicon"
)

// common is how many of the first principal components are dropped: they hold how frequent a word is rather
// than what it means.
const common = 2

// shrink centres the rows, drops their common components, projects them on the next lexicon.Dim principal
// components, and brings each to length 127 in whole numbers.
func shrink(rows [][]float64) [][lexicon.Dim]int8 {
	centre(rows)
	axes := principal(rows)[common : common+lexicon.Dim]
	out := make([][lexicon.Dim]int8, len(rows))
	for i, row := range rows {
		var p [lexicon.Dim]float64
		norm := 0.0
		for k, axis := range axes {
			p[k] = dot(row, axis)
			norm += p[k] * p[k]
		}
		norm = math.Sqrt(norm)
		for k := range p {
			out[i][k] = int8(math.Round(127 * p[k] / norm))
		}
	}
	return out
}

func centre(rows [][]float64) {
	mean := make([]float64, gloveDim)
	for _, row := range rows {
		for k, v := range row {
			mean[k] += v / float64(len(rows))
		}
	}
	for _, row := range rows {
		for k := range row {
			row[k] -= mean[k]
		}
	}
}

func dot(a, b []float64) float64 {
	s := 0.0
	for i := range a {
		s += a[i] * b[i]
	}
	return s
}

// principal returns the eigenvectors of the rows' covariance, that of the largest eigenvalue first.
func principal(rows [][]float64) [][]float64 {
	a := make([][]float64, gloveDim)
	v := make([][]float64, gloveDim)
	for i := range a {
		a[i], v[i] = make([]float64, gloveDim), make([]float64, gloveDim)
		v[i][i] = 1
	}
	for _, row := range rows {
		for i := range a {
			for j := range a {
				a[i][j] += row[i] * row[j] / float64(len(rows))
			}
		}
	}
	for range 20 {
		sweep(a, v)
	}
	order := make([]int, gloveDim)
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(a[j][j], a[i][i]) })
	axes := make([][]float64, gloveDim)
	for k, i := range order {
		axes[k] = v[i]
	}
	return axes
}

// sweep is one round of Jacobi rotations over the symmetric matrix a; v gathers them, an eigenvector in each row.
func sweep(a, v [][]float64) {
	for p := range a {
		for q := p + 1; q < len(a); q++ {
			if math.Abs(a[p][q]) > 1e-12 {
				rotate(a, v, p, q)
			}
		}
	}
}

func rotate(a, v [][]float64, p, q int) {
	theta := (a[q][q] - a[p][p]) / (2 * a[p][q])
	t := 1 / (math.Abs(theta) + math.Sqrt(theta*theta+1))
	if theta < 0 {
		t = -t
	}
	c := 1 / math.Sqrt(t*t+1)
	s := t * c
	for k := range a {
		a[k][p], a[k][q] = c*a[k][p]-s*a[k][q], s*a[k][p]+c*a[k][q]
	}
	for k := range a {
		a[p][k], a[q][k] = c*a[p][k]-s*a[q][k], s*a[p][k]+c*a[q][k]
		v[p][k], v[q][k] = c*v[p][k]-s*v[q][k], s*v[p][k]+c*v[q][k]
	}
}

// Neighbours of a word in the space of vectors: how many at most, how close at least, and how common a word
// must be to be one, unless the thesaurus has it. The most common words of all are neighbours of nothing.
const (
	maxNeighbours = 12
	minCosine     = 0.5
	commonRank    = 9000
	tooCommon     = 100
)

// neighbours returns for each stem those whose vectors are close to its own, the closest first.
func (w *cutWords) neighbours(b *book) [][]synonym {
	inBook := map[string]bool{}
	for _, s := range b.terms() {
		inBook[s] = true
	}
	var targets []int
	for i, s := range w.Stems {
		if (inBook[s] || w.Ranks[i] < commonRank) && b.flags[s]&lexicon.Fluff == 0 && w.Ranks[i] > tooCommon {
			targets = append(targets, i)
		}
	}
	out := make([][]synonym, len(w.Stems))
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for part := range workers {
		wg.Go(func() {
			for from := part; from < len(out); from += workers {
				out[from] = w.nearest(from, targets)
			}
		})
	}
	wg.Wait()
	return out
}

func (w *cutWords) nearest(from int, targets []int) []synonym {
	var close []synonym
	a := &w.Vectors[from]
	for _, to := range targets {
		sum, b := int32(0), &w.Vectors[to]
		for k := range a {
			sum += int32(a[k]) * int32(b[k])
		}
		if c := float64(sum) / (127 * 127); to != from && c >= minCosine {
			close = append(close, synonym{to, min(lexicon.MaxWeight, int(c*lexicon.MaxWeight))})
		}
	}
	slices.SortFunc(close, func(a, b synonym) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(a.To, b.To))
	})
	return close[:min(len(close), maxNeighbours)]
}
