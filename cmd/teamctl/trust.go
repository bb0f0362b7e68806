package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agentteam/pkg/agent/skills"
	"agentteam/pkg/config"
	"agentteam/pkg/config/role"
	"agentteam/pkg/execenv/trust"
	"agentteam/pkg/team"
)

func (a *app) trustCmd() *cobra.Command {
	var yes, remove bool
	cmd := &cobra.Command{
		Use: "trust [FILE]", Short: "Trust a repository's file, so that all of its keys count; without FILE, list the trusted files", Args: atMost(1),
		Long: "A repository chooses nothing: of a team.yaml or a role file that lies in it only harmless keys count, which describe or\n" +
			"narrow, and no skill. trust shows each other key with its value, and lets the file count as it stands, with the scripts that\n" +
			"it runs; of FILE .../NAME/SKILL.md the whole folder: a change of one of these ends the trust. Files in your own configuration folder are trusted.",
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
			if err := trust.OfUser().Remove(ctx, args[0]); err != nil {
				return err
			}
			a.notice(args[0] + " is not trusted any more")
			return nil
		}
		return a.trust(ctx, args[0], yes)
	}
	return cmd
}

func (a *app) listTrusted() error {
	files, err := trust.OfUser().List()
	if err != nil {
		return err
	}
	if len(files) == 0 {
		a.note("no file is trusted")
	}
	return printAll(a, files, func(t trust.Trusted) string { return t.File }, func() {
		t := table{columns: []column{{head: "FILE", cut: true}, {head: "STATE"}, {head: "KEYS", cut: true}, {head: "SINCE"}}}
		for _, f := range files {
			state := "trusted"
			if f.Refused {
				state = "refused"
			}
			switch data, err := trustedIn(f.File); {
			case err != nil:
				state = "gone"
			case !f.Holds(data):
				state = "changed: not trusted"
			}
			t.add(printable(f.File), state, printable(inOneLine(strings.Join(trust.Waiting{Keys: f.Keys}.Names(), ", "))), age(f.At)+" ago")
		}
		a.printTable(t)
	})
}

// trust shows which keys of a file wait for trust, asks, and trusts them.
func (a *app) trust(ctx context.Context, file string, yes bool) error {
	w, err := waitingIn(file)
	if err != nil {
		return err
	}
	if w == nil || len(w.Keys) == 0 {
		a.notice(file + " has no key that waits for trust")
		return nil
	}
	a.printWaits(*w)
	if !yes {
		if !a.hasTerminal() {
			return team.Errorf(team.InvalidArgument, "there is no terminal on which you could be asked").WithHint("if it should count: --yes")
		}
		if yes, err = a.mayCount(ctx); err != nil {
			return err
		}
		if !yes {
			a.notice("it is not trusted")
			return nil
		}
	}
	if err := trust.OfUser().Add(ctx, *w, false); err != nil {
		return err
	}
	then := "teams that are there take it over with teamctl teams set NAME --from-settings, or teamctl roles apply"
	if filepath.Base(file) == skills.FileName {
		then = "members read it from now on"
	}
	return a.printLine(w, file, file+" is trusted as it stands; "+then)
}

// mayCount asks a person whether to trust what was shown.
func (a *app) mayCount(ctx context.Context) (yes bool, err error) {
	err = a.ask(ctx, "Trust it as it stands? [y/N] ", func(answer string, more bool) bool {
		yes = answer != "" && strings.HasPrefix("yes", answer)
		return true
	})
	return yes, err
}

// printWaits prints each key of a file that waits for trust, with its value.
func (a *app) printWaits(w trust.Waiting) {
	a.notice(fmt.Sprintf("%s (sha256 %s) sets:", printable(w.File), w.SHA256))
	for _, line := range w.Lines() {
		a.printWhole("  ", line)
	}
}

// waits lists what in this folder's files waits for trust: first of the settings, then of role files and
// skills.
func waits(cfg config.Config, roles role.Roles) (all []trust.Waiting) {
	if w := cfg.Waiting(); len(w.Keys) > 0 {
		all = append(all, w)
	}
	for _, name := range slices.Sorted(maps.Keys(roles.Waiting)) {
		all = append(all, roles.Waiting[name])
	}
	return append(all, skills.Load(cfg.Folder(), cfg.Folder(), nil).Waiting...)
}

// decided loads the settings of a command that uses them, after asking a person about what waits for trust:
// once on a terminal, or with --trust. The command ends if keys that decide its model, place or sandbox are
// missing. Errors: those of [config.Load], and of [config.Config.Decided] for these keys.
func (a *app) decided(src config.Sources, keys ...string) (config.Config, error) {
	cfg, err := config.Load(src)
	if err != nil {
		return cfg, err
	}
	roles, _ := role.Load(cfg.Folder()) // who needs them reports what is wrong with them
	all := waits(cfg, roles)
	refused := func(w trust.Waiting) bool { return w.Refused }
	switch {
	case len(all) == 0:
		return cfg, nil
	case a.trusts:
	case a.asksForTrust && a.hasTerminal() && !slices.ContainsFunc(all, refused):
	default:
		return cfg, cfg.Decided(keys...)
	}
	for _, w := range all {
		a.printWaits(w)
	}
	yes := a.trusts
	if !yes {
		if yes, err = a.mayCount(a.cmd.Context()); err != nil {
			return cfg, err
		}
	}
	for _, w := range all {
		if err := trust.OfUser().Add(a.cmd.Context(), w, !yes); err != nil {
			return cfg, err
		}
	}
	if cfg, err = config.Load(src); err != nil {
		return cfg, err
	}
	return cfg, cfg.Decided(keys...)
}

// trustFlag adds the flag --trust to cmd, and makes it ask on a terminal about what waits for trust.
func (a *app) trustFlag(cmd *cobra.Command) {
	a.asksForTrust = true
	cmd.Flags().BoolVar(&a.trusts, "trust", false, "trust the files of this folder as they stand: print what waits, each with its digest, and let it count")
}

// printWhole prints what a person trusts completely: each line, the first after before and the others indented
// further, since a command may follow a comment.
func (a *app) printWhole(before, text string) {
	for line := range strings.SplitSeq(team.Escaped(strings.TrimSpace(text)), "\n") {
		a.notice(before + line)
		before = "      "
	}
}

// inOneLine returns a text in one line, with all characters and line ends visible.
func inOneLine(text string) string {
	return strings.ReplaceAll(team.Escaped(strings.TrimSpace(text)), "\n", " ⟨U+000A⟩ ")
}

// trustedIn returns what a person trusts of a file: its content, of a skill all of its files with their
// digests.
func trustedIn(file string) ([]byte, error) {
	if filepath.Base(file) == skills.FileName {
		return skills.Manifest(file)
	}
	return os.ReadFile(file)
}

// waitingIn returns what in a file waits for trust; nil if nothing does. A skill is named by its SKILL.md; a
// role file ends in .md; all others are settings files.
func waitingIn(file string) (*trust.Waiting, error) {
	if filepath.Base(file) == skills.FileName {
		return skills.WaitingIn(file)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		code := team.InvalidArgument
		if errors.Is(err, fs.ErrNotExist) {
			code = team.NotFound
		}
		return nil, team.Errorf(code, "%w", err)
	}
	if filepath.Ext(file) == ".md" {
		return role.WaitingIn(file, data)
	}
	return config.WaitingIn(file, data)
}
