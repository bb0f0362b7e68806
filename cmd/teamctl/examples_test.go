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
			if n := len("  " + line); n > 80 {
				t.Errorf("%s: it takes %d cells, and most terminals have 80", line, n)
			}
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

// On a narrow terminal no word of the help is torn apart, and the list of commands stays one.
func TestHelpOnANarrowTerminal(t *testing.T) {
	t.Setenv("COLUMNS", "40")
	var out strings.Builder
	if err := newApp(&out, io.Discard).run(t.Context(), []string{"--help"}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if line = strings.TrimRight(line, "\n"); len(line) > 40 && len(strings.Fields(line)) > 1 {
			t.Errorf("%q takes more than 40 cells", line)
		}
	}
	if want := "  completion  Generate the\n              autocompletion script for\n"; !strings.Contains(out.String(), want) {
		t.Errorf("the help lacks %q:\n%s", want, &out)
	}
}

// words splits a line as a shell does, but for what no example has.
func words(line string) (words []string) {
	for _, w := range regexp.MustCompile(`"[^"]*"|\S+`).FindAllString(line, -1) {
		words = append(words, strings.Trim(w, `"`))
	}
	return words
}
