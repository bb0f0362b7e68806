package main

import (
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Every command has its place in the table of docs/usage.md, and every flag is named in the
// docs. What stands there in backticks begins with a command that is there.
func TestCommandsAreInTheManual(t *testing.T) {
	manual := page(t, "usage.md")
	_, table, ok := strings.Cut(manual, "\n## Commands\n")
	if !ok {
		t.Fatal("docs/usage.md has no heading Commands")
	}
	rows := map[string]string{} // the row of a command, by its name
	for _, m := range regexp.MustCompile("`([a-z]+)[^`]*`").FindAllStringSubmatchIndex(table, -1) {
		begin := strings.LastIndex(table[:m[0]], "\n") + 1
		if strings.HasPrefix(table[begin:], "| `") && !strings.Contains(table[begin:m[0]], " | ") {
			row, _, _ := strings.Cut(table[begin:], "\n")
			rows[table[m[2]:m[3]]] = row
		}
	}
	docs := manual
	for _, name := range []string{"operations.md", "plans.md", "protocol.md", "api.md", "dialects.md", "rehearsal.md", "models.md"} {
		docs += page(t, name)
	}
	root := newApp(io.Discard, io.Discard).root()
	for _, cmd := range root.Commands() {
		if cmd.Hidden || cmd.Name() == "help" {
			continue
		}
		own := cmd.Name() != "completion" // that one is cobra's
		row := rows[cmd.Name()]
		delete(rows, cmd.Name())
		if row == "" {
			t.Errorf("docs/usage.md, Commands, has no row for %s", cmd.Name())
			continue
		}
		eachCommand(cmd, func(sub *cobra.Command) {
			if sub != cmd && own && !strings.Contains(row, sub.Name()) {
				t.Errorf("docs/usage.md: the row of %s does not name its %s", cmd.Name(), sub.Name())
			}
			sub.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
				if f.Name == "help" || f.Hidden || !own {
					return
				}
				if !strings.Contains(docs, "--"+f.Name) && (f.Shorthand == "" || !strings.Contains(row, "-"+f.Shorthand)) {
					t.Errorf("no page names --%s of %s", f.Name, sub.CommandPath())
				}
			})
		})
	}
	for name := range rows {
		t.Errorf("docs/usage.md, Commands, has a row for %s, which is no command", name)
	}
}

func eachCommand(cmd *cobra.Command, f func(*cobra.Command)) {
	if cmd.Hidden {
		return
	}
	f(cmd)
	for _, sub := range cmd.Commands() {
		eachCommand(sub, f)
	}
}

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
