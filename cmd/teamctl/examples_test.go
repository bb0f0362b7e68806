package main

import (
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Each command has an example, and each example is one that the command takes.
func TestExamples(t *testing.T) {
	var names []string
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, below := range cmd.Commands() {
			if name := nameOf(below); name != "help" && !strings.HasPrefix(name, "completion") && !below.Hidden {
				names = append(names, name)
				walk(below)
			}
		}
	}
	walk(newApp(io.Discard, io.Discard).root())
	for _, name := range names {
		if len(examples[name]) == 0 {
			t.Errorf("teamctl %s has no example", name)
		}
	}
	for name, lines := range examples {
		for _, line := range lines {
			_, call, ok := strings.Cut(line, "teamctl ")
			call, _, _ = strings.Cut(call, " && ")
			call, _, _ = strings.Cut(call, " | ")
			cmd, args, err := newApp(io.Discard, io.Discard).root().Find(words(call))
			if err != nil || !ok || nameOf(cmd) != name && !strings.HasPrefix(nameOf(cmd), name+" ") {
				t.Errorf("%s: it is no example of %s: %v", line, name, err)
				continue
			}
			if err := cmd.ParseFlags(args); err != nil {
				t.Errorf("%s: %v", line, err)
			} else if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
}

// words splits a line as a shell does, but for what no example has.
func words(line string) (words []string) {
	for _, w := range regexp.MustCompile(`"[^"]*"|\S+`).FindAllString(line, -1) {
		words = append(words, strings.Trim(w, `"`))
	}
	return words
}
