package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agentteam/pkg/agent/skills"
	"agentteam/pkg/config"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
)

func (a *app) skillsCmd() *cobra.Command {
	cmd := group(a.skillsLsCmd())
	cmd.Use, cmd.Aliases, cmd.Short = "skills", []string{"skill"}, "Show the skills that members read; by itself it lists them"
	cmd.AddCommand(a.skillsLsCmd(), a.skillsShowCmd(), a.skillsValidateCmd())
	return cmd
}

// seeSkills reads the skills of this folder and of the user, also those that wait for trust, and shows files
// that contain no skill.
func (a *app) seeSkills() ([]skills.Skill, error) {
	cfg, err := config.Load(sources(a.cmd))
	if err != nil {
		return nil, err
	}
	set := skills.Load(cfg.Folder(), cfg.Folder(), nil)
	for _, f := range set.Faults {
		a.notice(f)
	}
	return slices.Concat(set.All, set.Untaken), nil
}

// skillState returns whether members read a skill.
func skillState(s skills.Skill) string {
	switch {
	case s.Waits:
		return "waits for trust"
	case s.Hidden:
		return "not for models"
	}
	return "ready"
}

func (a *app) skillsLsCmd() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List the skills of this folder, of your own folders and the built-in ones", Args: atMost(0),
		RunE: func(*cobra.Command, []string) error {
			all, err := a.seeSkills()
			if err != nil {
				return err
			}
			return printList(a, all, func(s skills.Skill) string { return s.Name }, func() table {
				t := table{columns: []column{{head: "NAME"}, {head: "STATE"}, {head: "FROM", cut: true, drop: 1}, {head: "DESCRIPTION", cut: true, drop: 2}}}
				for _, s := range all {
					t.add(s.Name, skillState(s), printable(strings.TrimSpace(string(s.Source)+" "+s.Folder)), printable(s.Description))
				}
				return t
			})
		},
	}
}

func (a *app) skillsShowCmd() *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Aliases: []string{"get"}, Short: "Show a skill with its text and the names of its files", Args: exactly(1, "the NAME of a skill"),
		RunE: func(_ *cobra.Command, args []string) error {
			all, err := a.seeSkills()
			if err != nil {
				return err
			}
			i := slices.IndexFunc(all, func(s skills.Skill) bool { return s.Name == args[0] })
			if i < 0 {
				return team.Errorf(team.NotFound, "there is no skill %q", args[0]).WithHint("teamctl skills lists them")
			}
			s := all[i]
			return a.printFields(struct {
				skills.Skill
				Text string `json:"text"`
			}{s, s.Body}, s.Name, []field{{"name", s.Name}, {"state", skillState(s)}, {"from", strings.TrimSpace(string(s.Source) + " " + s.Folder)},
				{"description", s.Description}, {"files", strings.Join(s.Files, ", ")}, {"text", s.Body}})
		},
	}
}

func (a *app) skillsValidateCmd() *cobra.Command {
	return &cobra.Command{
		Use: "validate [DIR...]", Aliases: []string{"check"}, Short: "Check skills as strictly as their specification, without a cluster",
		Long: "validate checks the skills in the folders DIR..., else those of this folder. With a fault it exits 2.",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				for _, pattern := range []string{".claude/skills/*/SKILL.md", ".agents/skills/*/SKILL.md"} {
					files, _ := filepath.Glob(pattern) // the patterns are well formed
					for _, f := range files {
						args = append(args, filepath.Dir(f))
					}
				}
			}
			type report struct {
				Folder  string   `json:"folder"`
				Faults  []string `json:"faults"`
				Notices []string `json:"notices"`
			}
			reports, n := []report{}, 0
			for _, dir := range args {
				faults, notices := skills.Validate(dir)
				n += len(faults)
				reports = append(reports, report{dir, faults, notices})
			}
			err := a.print(reports, args, func() {
				for _, r := range reports {
					for _, f := range r.Faults {
						a.say(team.OneLine(r.Folder + ": " + f))
					}
					for _, f := range r.Notices {
						a.say(team.OneLine(r.Folder + ": warning: " + f))
					}
				}
			})
			if err == nil && n > 0 {
				err = team.Errorf(team.InvalidArgument, "%s in %s", explain.Counted(n, "fault"), explain.Counted(len(args), "skill")).WithHint("docs/skills.md shows what a skill has")
			}
			if err == nil {
				a.note(fmt.Sprintf("%s: no fault", explain.Counted(len(args), "skill")))
			}
			return err
		},
	}
}
