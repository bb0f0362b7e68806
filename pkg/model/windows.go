package model

import (
	"cmp"
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

// modelWindow is the limits of the models of a name.
type modelWindow struct {
	model string // as in the lists of a profile
	Limits
	above         int     // tokens of a prompt; a longer one multiplies the prices of its call; 0: none does
	input, output float64 // by these
}

// Surcharge returns by how much the model's maker multiplies the prices of input, whether cached or not, and of output
// for a call whose prompt has that many tokens; else 1.
func Surcharge(model string, prompt int) (input, output float64) {
	if e := entryOf(windows(), model); e.above > 0 && prompt > e.above {
		return e.input, e.output
	}
	return 1, 1
}

func parseWindows(text string) ([]modelWindow, error) {
	r := csv.NewReader(strings.NewReader(text))
	r.Comment = '#'
	r.FieldsPerRecord = 7
	rows, err := r.ReadAll()
	if err != nil {
		return nil, err
	}
	var table []modelWindow
	for _, row := range rows[1:] { // below the names of the columns
		size, err1 := strconv.Atoi(row[1])
		most, err2 := strconv.Atoi(row[2])
		above, err3 := strconv.Atoi(row[3])
		input, err4 := strconv.ParseFloat(row[4], 64)
		output, err5 := strconv.ParseFloat(row[5], 64)
		if cmp.Or(err1, err2, err3, err4, err5) != nil || size <= 0 || most < 0 || above < 0 || input < 1 || output < 1 || row[6] == "" {
			return nil, fmt.Errorf("windows.csv: %q", row)
		}
		table = append(table, modelWindow{row[0], Limits{Window: size, MaxOutput: most}, above, input, output})
	}
	return table, nil
}

// knownLimits returns the known limits of the model; zero is unknown.
func knownLimits(model string) Limits { return entryOf(windows(), model).Limits }

// entryOf returns the longest entry that names the model.
func entryOf(table []modelWindow, model string) modelWindow {
	var best modelWindow
	for _, w := range table {
		if len(w.model) > len(best.model) && names(w.model, model) {
			best = w
		}
	}
	return best
}

// LeastWindow is the smallest window, in tokens, with which an agent can work: its system message and tools take some
// 3,000, and an answer needs room.
const LeastWindow = 8192

// WindowOf returns the window that a client with these options assumes before its endpoint has answered; 0 if unknown.
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
