package timeline

import "time"

// mostSpans is the approximate limit for the spans of all lanes of a window.
const mostSpans = 250_000

// Window returns the part of the lanes between two times, with neighbouring spans that are shorter than a points-th of that time
// merged: the merged span is of the kind that took longest of them. A lane has about points spans at most, whatever its member has
// done, and fewer if there are many lanes; its Seconds are exact, and of the window. Tasks, path and counts stay. A zero time
// means the timeline's own.
func (t Timeline) Window(from, to time.Time, points int) Timeline {
	if from.IsZero() || from.Before(t.From) {
		from = t.From
	}
	if to.IsZero() || to.After(t.To) {
		to = t.To
	}
	t.From, t.To = from, to
	points = min(points, mostSpans/max(1, len(t.Lanes)))
	step := to.Sub(from) / time.Duration(max(points, 1))
	lanes := make([]Lane, len(t.Lanes))
	for i, l := range t.Lanes {
		lanes[i] = l.window(from, to, step)
	}
	t.Lanes = lanes
	return t
}

func (l Lane) window(from, to time.Time, step time.Duration) Lane {
	out := l
	out.Spans, out.Seconds = []Span{}, map[Kind]float64{}
	var group []Span // short ones beside each other
	flush := func() {
		if len(group) > 0 {
			out.Spans = append(out.Spans, merged(group))
		}
		group = group[:0]
	}
	for _, s := range l.Spans {
		if s.From.Before(from) {
			s.From = from
		}
		if s.To.After(to) {
			s.To = to
		}
		took := s.To.Sub(s.From)
		if took <= 0 {
			continue
		}
		out.Seconds[s.Kind] += took.Seconds()
		if n := len(group); n > 0 && (took >= step || !group[n-1].To.Equal(s.From)) {
			flush()
		}
		if took >= step {
			out.Spans = append(out.Spans, s)
			continue
		}
		if group = append(group, s); s.To.Sub(group[0].From) >= step {
			flush()
		}
	}
	flush()
	return out
}

// merged returns one span in place of several neighbouring ones.
func merged(group []Span) Span {
	longest, most := group[0], time.Duration(0)
	for i, s := range group {
		took := time.Duration(0)
		for _, o := range group[i:] {
			if o.like(s) {
				took += o.To.Sub(o.From)
			}
		}
		if took > most {
			longest, most = s, took
		}
	}
	longest.From, longest.To = group[0].From, group[len(group)-1].To
	return longest
}
