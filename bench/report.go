package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"
)

// figure is one thing measured. Names are stable: machines compare runs by them.
type figure struct {
	Name  string   `json:"name"`
	Value float64  `json:"value"`
	Unit  string   `json:"unit"`
	Raw   *float64 `json:"raw"`   // the same work without agentteam, in Unit; null if there is no such thing
	Ratio *float64 `json:"ratio"` // Value / Raw: for a rate less is worse, for a time more
	Goal  *float64 `json:"goal"`  // of Ratio if there is one, else of Value; null if none is set
	Met   *bool    `json:"met"`

	bound string // "<=" or ">=": on which side of the goal is good
}

func measured(name string, value float64, unit string) figure {
	return figure{Name: name, Value: round(value), Unit: unit}
}

// beside returns f with the raw figure that was measured in the same run.
func (f figure) beside(raw float64) figure {
	f.Raw, f.Ratio = new(round(raw)), new(round(f.Value/raw))
	return f
}

// judged is what a goal is held against.
func (f figure) judged() float64 {
	if f.Ratio != nil {
		return *f.Ratio
	}
	return f.Value
}

// atMost returns f judged by a goal that it should not exceed.
func (f figure) atMost(goal float64) figure {
	f.Goal, f.Met, f.bound = &goal, new(f.judged() <= goal), "<="
	return f
}

// atLeast returns f judged by a goal that it should reach.
func (f figure) atLeast(goal float64) figure {
	f.Goal, f.Met, f.bound = &goal, new(f.judged() >= goal), ">="
	return f
}

// report is the result of one bench.
type report struct {
	Bench   string   `json:"bench"`
	Figures []figure `json:"figures"`
}

// write prints a table for people and then, as the last line, r as JSON.
func (r report) write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "FIGURE\tVALUE\tUNIT\tRAW\tRATIO\tGOAL\tMET")
	for _, f := range r.Figures {
		goal, met := "-", "-"
		if f.Goal != nil {
			goal, met = f.bound+" "+number(f.Goal), "no"
			if *f.Met {
				met = "yes"
			}
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", f.Name, number(&f.Value), f.Unit, number(f.Raw), number(f.Ratio), goal, met)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(r)
}

// number prints v, or "-" for none.
func number(v *float64) string {
	if v == nil {
		return "-"
	}
	return strconv.FormatFloat(*v, 'f', -1, 64)
}

// round keeps four significant digits: more would be noise.
func round(v float64) float64 {
	if v == 0 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(v)))-3)
	// By way of text, since 0.1 times a whole number is not a short number.
	short, _ := strconv.ParseFloat(strconv.FormatFloat(math.Round(v/unit)*unit, 'g', 4, 64), 64)
	return short
}

// quantile returns the smallest of the samples that at least the share q of them
// does not exceed: 0.5 is the median. There must be a sample; they are not sorted
// in place.
func quantile[T cmp.Ordered](samples []T, q float64) T {
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

func median[T cmp.Ordered](samples []T) T { return quantile(samples, 0.5) }

// harmonic is the harmonic mean: of rates over equally much work, the rate of all of it.
func harmonic(rates []float64) float64 {
	sum := 0.0
	for _, r := range rates {
		sum += 1 / r
	}
	return float64(len(rates)) / sum
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
