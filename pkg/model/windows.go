package model

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

//go:embed windows.csv
var windowsCSV string

// windows is the table of windows.csv, read at its first use.
var windows = sync.OnceValue(func() []modelWindow {
	table, err := parseWindows(windowsCSV)
	if err != nil {
		panic(err) // the file is a part of the program, and a test reads it
	}
	return table
})

// modelWindow is what models of a name take and give.
type modelWindow struct {
	model string // as in the lists of a profile
	Limits
}

func parseWindows(text string) ([]modelWindow, error) {
	r := csv.NewReader(strings.NewReader(text))
	r.Comment = '#'
	r.FieldsPerRecord = 4
	rows, err := r.ReadAll()
	if err != nil {
		return nil, err
	}
	var table []modelWindow
	for _, row := range rows[1:] { // below the names of the columns
		size, err1 := strconv.Atoi(row[1])
		most, err2 := strconv.Atoi(row[2])
		if err1 != nil || err2 != nil || size <= 0 || most < 0 || row[3] == "" {
			return nil, fmt.Errorf("windows.csv: %q", row)
		}
		table = append(table, modelWindow{row[0], Limits{Window: size, MaxOutput: most}})
	}
	return table, nil
}

// knownLimits returns what is known of the model; zero is not known.
func knownLimits(model string) Limits { return limitsIn(windows(), model) }

// limitsIn returns the limits of the longest entry that names the model.
func limitsIn(table []modelWindow, model string) Limits {
	var best modelWindow
	for _, w := range table {
		if len(w.model) > len(best.model) && names(w.model, model) {
			best = w
		}
	}
	return best.Limits
}

// LeastWindow is the smallest window, in tokens, with which an agent can work: its system
// message and tools take some 3,000, and an answer needs room.
const LeastWindow = 8192

// WindowOf returns the window that a client with these options takes its model to have,
// before its endpoint has said anything; 0 if that is not known.
func WindowOf(o Options) int {
	o, err := o.withDefaults()
	if err != nil {
		return 0
	}
	d, err := newDialect(o)
	if err != nil {
		return 0
	}
	return d.limits().Window
}
