package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"agentteam/pkg/config"
	"agentteam/pkg/grant"
	"agentteam/pkg/role"
	"agentteam/pkg/team"
)

func (a *app) trustCmd() *cobra.Command {
	var yes, remove bool
	cmd := &cobra.Command{
		Use: "trust [FILE]", Short: "Trust a repository's file, so that the rights it grants count; without FILE, list the trusted files", Args: atMost(1),
		Long: "trust shows what a team.yaml or a role file would grant (network, credentials, folders, rules that allow, a weaker\n" +
			"sandbox, a mode that asks less, ignored files for trees, more than 10 teammates, keys that go to an endpoint of its\n" +
			"choice, a branch_hook) and lets it count, as the file stands: a change of the file ends the trust.\n" +
			"Files in your own configuration folder are trusted.",
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&remove, "remove", false, "trust the file no longer")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		ctx, cancel := a.deadline(a.cmd.Context())
		defer cancel()
		switch {
		case len(args) == 0 && remove:
			return team.Errorf(team.InvalidArgument, "--remove needs the FILE")
		case len(args) == 0:
			return a.listTrusted()
		case remove:
			if err := grant.OfUser().Remove(ctx, args[0]); err != nil {
				return err
			}
			a.tell(args[0] + " is not trusted any more")
			return nil
		}
		return a.trust(ctx, args[0], yes)
	}
	return cmd
}

func (a *app) listTrusted() error {
	files, err := grant.OfUser().List()
	if err != nil {
		return err
	}
	if len(files) == 0 {
		a.note("no file is trusted")
	}
	return printAll(a, files, func(t grant.Trusted) string { return t.File }, func() {
		t := table{columns: []column{{head: "FILE", cut: true}, {head: "STATE"}, {head: "GRANTS", cut: true}, {head: "SINCE"}}}
		for _, f := range files {
			state := "trusted"
			switch data, err := os.ReadFile(f.File); {
			case err != nil:
				state = "gone"
			case !f.Holds(data):
				state = "changed: not trusted"
			}
			t.add(printable(f.File), state, printable(inOneLine(strings.Join(f.Grants, ", "))), age(f.At)+" ago")
		}
		a.printTable(t)
	})
}

// trust shows what a file grants, asks, and has it count.
func (a *app) trust(ctx context.Context, file string, yes bool) error {
	data, grants, err := grantsOf(file)
	if err != nil {
		return err
	}
	if len(grants) == 0 {
		a.tell(file + " grants nothing, so that it need not be trusted")
		return nil
	}
	fmt.Fprintf(a.err, "%s grants:\n", printable(file))
	for _, g := range grants {
		a.tellWhole("  ", g)
	}
	if !yes {
		if !a.hasTerminal() {
			return team.Errorf(team.InvalidArgument, "there is no terminal on which you could be asked").WithHint("if it should count: --yes")
		}
		err := a.ask(ctx, "Trust it as it stands? [y/N] ", func(answer string, more bool) bool {
			yes = answer != "" && strings.HasPrefix("yes", answer)
			return true
		})
		if err != nil {
			return err
		}
		if !yes {
			a.tell("it is not trusted")
			return nil
		}
	}
	if err := grant.OfUser().Add(ctx, file, data, grants); err != nil {
		return err
	}
	return a.printLine(map[string]any{"file": file, "grants": grants}, file,
		file+" is trusted as it stands; teams that are there take it over with teamctl teams set NAME --from-settings, or teamctl roles apply")
}

// tellWhole prints what a person trusts so that all of it can be seen: each line, the first behind
// before and the others further in, since what comes after a comment may be a command.
func (a *app) tellWhole(before, text string) {
	for line := range strings.SplitSeq(team.Escaped(strings.TrimSpace(text)), "\n") {
		a.tell(before + line)
		before = "      "
	}
}

// inOneLine is a text in which all can be seen, also where its lines end.
func inOneLine(text string) string {
	return strings.ReplaceAll(team.Escaped(strings.TrimSpace(text)), "\n", " ⟨U+000A⟩ ")
}

// grantsOf returns what a file holds, and what it grants, as it stands. A role file ends in .md;
// each other is a settings file.
func grantsOf(file string) (data []byte, grants []string, err error) {
	if data, err = os.ReadFile(file); err != nil {
		code := team.InvalidArgument
		if errors.Is(err, fs.ErrNotExist) {
			code = team.NotFound
		}
		return nil, nil, team.Errorf(code, "%w", err)
	}
	if filepath.Ext(file) == ".md" {
		grants, err = role.Grants(file, data)
	} else {
		grants, err = config.GrantsIn(file, data)
	}
	return data, grants, err
}
