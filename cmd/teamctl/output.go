package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"agentteam/pkg/team/codec"

	"go.yaml.in/yaml/v4"
)

// writeJSON writes v as one line of JSON.
func writeJSON(w io.Writer, v any) error {
	data, err := codec.Plain(v)
	if err == nil {
		_, err = w.Write(append(data, '\n'))
	}
	return err
}

// writeYAML writes v with the names of its JSON.
func writeYAML(w io.Writer, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var node yaml.Node // JSON is YAML; decoding it as a node keeps the order of the keys
	if err := yaml.Unmarshal(data, &node); err != nil {
		return err
	}
	plain(&node)
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(&node); err != nil {
		return err
	}
	return enc.Close()
}

// plain removes JSON's braces and quotes.
func plain(n *yaml.Node) {
	n.Style = 0
	for _, c := range n.Content {
		plain(c)
	}
}

// print writes v in the requested format: unchanged in JSON and YAML, in jsonl one line for each item if v is
// a []any, by name with names, else with table.
func (a *app) print(v any, names []string, table func()) error {
	return a.atOnce(func() error { return a.printPlain(v, names, table) })
}

// atOnce writes f's output to stdout in one piece, unless stdout is a terminal: then a reader that stops
// early, like grep -q, does not end the command before its end.
func (a *app) atOnce(f func() error) error {
	if a.arrived != nil { // a pager may take its time
		a.arrived()
	}
	if live(a.out) {
		return f()
	}
	list := a.notes.begin(a.out)
	if list == nil { // f is a part of what is printed
		return f()
	}
	to := a.out
	a.out = list
	defer func() { a.out = to }()
	err := f()
	if eerr := list.end(); eerr != nil { // of which f may have met the first
		err = unwritten(eerr)
	}
	return err
}

// printPlain prints like print; [app.atOnce] and [output] remember write errors.
func (a *app) printPlain(v any, names []string, table func()) error {
	switch a.output {
	case asJSON:
		return writeJSON(a.out, v)
	case asYAML:
		return writeYAML(a.out, v)
	case asJSONL:
		items, list := v.([]any)
		if !list {
			items = []any{v}
		}
		for _, item := range items {
			if err := writeJSON(a.out, item); err != nil {
				return err
			}
		}
	case asName:
		for _, name := range names {
			fmt.Fprintln(a.out, name)
		}
	default:
		table()
	}
	return nil
}

// printLine is print for one thing, with lines for people.
func (a *app) printLine(v any, name string, lines ...string) error {
	return a.print(v, []string{name}, func() { a.say(lines...) })
}

// printFields is print for one thing, with fields for people.
func (a *app) printFields(v any, name string, fields []field) error {
	return a.print(v, []string{name}, func() { writeFields(a.screen(), fields) })
}

// printAll prints all as an array, one a line in jsonl, or by name; for people it calls show.
func printAll[T any](a *app, all []T, name func(T) string, show func()) error {
	items, names := make([]any, len(all)), make([]string, len(all))
	for i, v := range all {
		items[i], names[i] = v, name(v)
	}
	return a.print(items, names, show)
}

// printNone prints an empty list.
func (a *app) printNone() error { return a.print([]any{}, nil, func() {}) }

// printList is printAll with a table; it prints nothing to people for an empty list.
func printList[T any](a *app, all []T, name func(T) string, table func() table) error {
	return printAll(a, all, name, func() {
		if len(all) > 0 {
			a.printTable(table())
		}
	})
}

// oneByOne returns a function that prints single things for programs; nil if the output is for people.
func oneByOne[T any](a *app, name func(T) string) func(T) error {
	switch a.output {
	case asJSON, asJSONL:
		return func(v T) error { return writeJSON(a.out, v) }
	case asYAML:
		return func(v T) error {
			if _, err := fmt.Fprintln(a.out, "---"); err != nil {
				return err
			}
			return writeYAML(a.out, v)
		}
	case asName:
		return func(v T) error { _, err := fmt.Fprintln(a.out, name(v)); return err }
	}
	return nil
}

// forPeople reports whether the output is a table.
func (a *app) forPeople() bool { return a.output == asTable || a.output == asWide }

// note prints to people the reason for an empty output. Programs read the output itself.
func (a *app) note(line string) {
	if a.forPeople() {
		fmt.Fprintln(a.err, printable(line))
	}
}

// say prints sentences as a command's result, one a line.
func (a *app) say(lines ...string) {
	for _, line := range lines {
		fmt.Fprintln(a.out, printable(line))
	}
}

// sayText prints a text by others, and keeps its lines.
func (a *app) sayText(text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintln(a.out, wrapped(printable(strings.TrimRight(line, "\r\n")), lineWidth(a.out)))
	}
}
