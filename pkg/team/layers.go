package team

import (
	"cmp"
	"slices"
)

// sweeps is how often the layers of a graph are put in order, down and up in turn. More change
// little.
const sweeps = 8

// layered is the graph while its nodes get their places.
type layered struct {
	nodes  []Node
	layers [][]int // the nodes of each depth, by their index, in the order of their places
	before [][]int // of each node, those that it waits for
	after  [][]int // of each node, those that wait for it
}

// arrange gives each node its place in its layer, so that few edges cross when layers are drawn
// beside each other. A node goes where the nodes before it are on the average, then where those
// after it are, and so on; of the arrangements met, that with the fewest crossings stays. It takes
// milliseconds for a thousand tasks.
func (g Graph) arrange() {
	l := layered{nodes: g.Nodes, before: make([][]int, len(g.Nodes)), after: make([][]int, len(g.Nodes))}
	at := make(map[TaskID]int, len(g.Nodes))
	for i, n := range g.Nodes {
		at[n.ID] = i
		for len(l.layers) <= n.Depth {
			l.layers = append(l.layers, nil)
		}
		l.nodes[i].Place = len(l.layers[n.Depth])
		l.layers[n.Depth] = append(l.layers[n.Depth], i)
	}
	for _, e := range g.Edges {
		from, to := at[e.From], at[e.To]
		l.before[to], l.after[from] = append(l.before[to], from), append(l.after[from], to)
	}
	best, fewest := l.places(), l.crossings()
	for i := 0; i < sweeps && fewest > 0; i++ {
		if i%2 == 0 {
			for _, layer := range l.layers {
				l.sort(layer, l.before)
			}
		} else {
			for _, layer := range slices.Backward(l.layers) {
				l.sort(layer, l.after)
			}
		}
		if n := l.crossings(); n < fewest {
			best, fewest = l.places(), n
		}
	}
	for i, place := range best {
		l.nodes[i].Place = place
	}
}

func (l layered) places() []int {
	places := make([]int, len(l.nodes))
	for i, n := range l.nodes {
		places[i] = n.Place
	}
	return places
}

// sort puts a layer in the order of the middle of each node's neighbours; one without any stays
// where it is.
func (l layered) sort(layer []int, neighbours [][]int) {
	middle := make(map[int]float64, len(layer))
	for _, i := range layer {
		middle[i] = l.height(i)
		if near := neighbours[i]; len(near) > 0 {
			sum := 0.0
			for _, n := range near {
				sum += l.height(n)
			}
			middle[i] = sum / float64(len(near))
		}
	}
	slices.SortStableFunc(layer, func(a, b int) int { return cmp.Compare(middle[a], middle[b]) })
	for place, i := range layer {
		l.nodes[i].Place = place
	}
}

// height is where a node stands in its layer, from 0 to 1: layers are of different lengths.
func (l layered) height(i int) float64 {
	return (float64(l.nodes[i].Place) + 0.5) / float64(len(l.layers[l.nodes[i].Depth]))
}

// crossings is how many pairs of edges between the same two layers cross.
func (l layered) crossings() (n int) {
	for _, layer := range l.layers {
		ends := map[int][]int{} // places where edges end, by the depth there; those of one node in order
		for _, i := range layer {
			for _, to := range slices.SortedFunc(slices.Values(l.after[i]), func(a, b int) int { return cmp.Compare(l.nodes[a].Place, l.nodes[b].Place) }) {
				ends[l.nodes[to].Depth] = append(ends[l.nodes[to].Depth], l.nodes[to].Place)
			}
		}
		for depth, places := range ends {
			n += inversions(places, len(l.layers[depth]))
		}
	}
	return n
}

// inversions is how many pairs of places, all below a limit, are in falling order.
func inversions(places []int, limit int) (n int) {
	tree := make([]int, limit+1) // a Fenwick tree of how often each place was seen
	for seen, place := range places {
		n += seen
		for i := place + 1; i > 0; i -= i & -i {
			n -= tree[i]
		}
		for i := place + 1; i <= limit; i += i & -i {
			tree[i]++
		}
	}
	return n
}
