package main

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// Whatever is wrong with a command line is said in one line, with status 2, before anything
// is done: of every command an unknown flag, a flag without its value, an empty value, and
// one of the wrong kind.
func TestUsageErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, lines := range examples {
		root := newApp(io.Discard, io.Discard).root()
		_, call, _ := strings.Cut(lines[0], "teamctl ")
		call, _, _ = strings.Cut(call, " && ")
		call, _, _ = strings.Cut(call, " | ")
		good := words(call)
		cmd, _, err := root.Find(good)
		if err != nil {
			t.Fatalf("%s: %v", lines[0], err)
		}
		refused(t, name, append(slices.Clone(good), "--bogus"))
		for _, f := range flagsOf(cmd) {
			switch f.Value.Type() {
			case "bool":
				refused(t, name, append(slices.Clone(good), "--"+f.Name+"=perhaps"))
			default:
				refused(t, name, append(slices.Clone(good), "--"+f.Name))
				if f.Name != "description" { // which may be none
					refused(t, name, append(slices.Clone(good), "--"+f.Name+"="))
				}
			}
			if slices.Contains([]string{"int", "duration", "float64"}, f.Value.Type()) {
				refused(t, name, append(slices.Clone(good), "--"+f.Name+"=many"))
			}
		}
	}
}

func flagsOf(cmd *cobra.Command) (all []*pflag.Flag) {
	cmd.InheritedFlags() // which merges them
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" && !f.Hidden {
			all = append(all, f)
		}
	})
	return all
}

// refused wants a call to end with status 2 and one line. Were it taken, it would find no
// server, and no time.
func refused(t *testing.T, name string, args []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), brokertest.Longest)
	defer cancel()
	if !slices.ContainsFunc(args, func(s string) bool { return strings.HasPrefix(s, "--server") }) {
		args = append([]string{"--server", "nats://127.0.0.1:1"}, args...)
	}
	var out, said bytes.Buffer
	a := newApp(&out, &said)
	err := a.run(ctx, args)
	if code := team.ExitCode(err); code != 2 {
		t.Errorf("%s: teamctl %q ends with %d, want 2: %v", name, args, code, err)
		return
	}
	a.printError(err)
	if text := strings.TrimSuffix(said.String(), "\n"); text == "" || strings.Contains(text, "\n") {
		t.Errorf("%s: teamctl %q says %q, want one line", name, args, text)
	}
	if out.Len() > 0 {
		t.Errorf("%s: teamctl %q prints %q", name, args, out.String())
	}
}
