package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"
	"golang.org/x/term"

	"agentteam/pkg/config"
	"agentteam/pkg/config/role"
	"agentteam/pkg/execenv/trust"
	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/team"
)

//go:embed init.tmpl
var initTemplate string

// newSettings is the content of the file that `teamctl init` writes: what people were asked, and what the
// folder has.
type newSettings struct {
	Team, Description, Model, BaseURL string
	MaxTeammates                      string
	Isolation, Roles                  string
	Kinds, Hosts                      string
	Instructions                      string
	Unseen                            []unseen
}

func (a *app) initCmd() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "init", Short: "Write a team.yaml for this folder", Args: atMost(0),
		Long: "init looks at what this folder has, asks a few things and writes team.yaml, with what else can be set as comments.\n" +
			"A team.yaml that is there stays as it is. With --yes it asks nothing.",
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "ask nothing, take what was found")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		const file = "team.yaml"
		if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
			return settingsThere(file)
		}
		if !yes && !term.IsTerminal(int(os.Stdin.Fd())) {
			return team.Errorf(team.InvalidArgument, "there is no terminal to ask at").WithHint("--yes asks nothing")
		}
		cfg, err := a.clientSettings()
		if err != nil {
			return err
		}
		s, err := findSettings(cmd.Context(), cfg)
		if err == nil && !yes {
			err = s.ask(os.Stdin, a.err)
		}
		if err != nil {
			return err
		}
		if err := s.write(file); err != nil {
			return err
		}
		if w, err := waitingIn(file); err == nil && w != nil { // the person has written it
			err = trust.OfUser().Add(a.cmd.Context(), *w, false)
			if err != nil {
				a.notice(team.Line(err))
			}
		}
		for _, u := range s.Unseen {
			a.notice(u.String())
		}
		return a.printLine(map[string]any{"file": file}, file, "team.yaml is written; next: teamctl run GOAL")
	}
	return cmd
}

func settingsThere(file string) error {
	return team.Errorf(team.Conflict, "there is a %s here", file).WithHint("`teamctl config validate` checks it; remove it to begin anew")
}

// kinds are the files that identify a toolchain, and the hosts of its packages.
var kinds = []struct{ file, name, hosts string }{
	{"go.mod", "Go", "proxy.golang.org, sum.golang.org"},
	{"package.json", "npm", "registry.npmjs.org"},
	{"Cargo.toml", "Cargo", "index.crates.io, static.crates.io"},
	{"pyproject.toml", "Python", "pypi.org, files.pythonhosted.org"},
	{"requirements.txt", "Python", "pypi.org, files.pythonhosted.org"},
}

// findSettings returns settings from this folder, the environment and the settings above it.
func findSettings(ctx context.Context, cfg config.Config) (newSettings, error) {
	roles, err := role.Load(".")
	if err != nil {
		return newSettings{}, err
	}
	s := newSettings{Team: teamNamed(cfg), Model: cfg.Model, BaseURL: cfg.BaseURL, MaxTeammates: strconv.Itoa(team.DefaultMaxTeammates)}
	s.Isolation = "This is no git repository: all members work in this folder."
	c, err := gitrepo.Inspect(ctx, ".")
	if err == nil {
		s.Unseen = unseenIn(ctx, c, cfg.Policy)
	}
	if _, top := os.Lstat(".git"); err == nil || top == nil { // maybe without a commit
		s.Isolation = "This is a git repository: each task is done in a separate tree and merged, once there is a commit."
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(roles.All)) {
		if file := roles.Files[name]; file != "" {
			name += " (" + team.Clean(file, 80) + ")"
		}
		names = append(names, name)
	}
	s.Roles = strings.Join(names, ", ")
	var found, hosts []string
	for _, k := range kinds {
		if _, err := os.Stat(k.file); err == nil && !slices.Contains(found, k.name) {
			found, hosts = append(found, k.name), append(hosts, k.hosts)
		}
	}
	s.Kinds, s.Hosts = strings.Join(found, ", "), strings.Join(hosts, ", ")
	for _, file := range []string{"AGENTS.md", "CLAUDE.md"} {
		if _, err := os.Stat(file); err == nil {
			s.Instructions = strings.TrimPrefix(s.Instructions+" and "+file, " and ")
		}
	}
	return s, nil
}

// teamNamed returns the team of the settings, else one with the folder's name.
func teamNamed(cfg config.Config) string {
	if cfg.Team != team.DefaultTeam {
		return string(cfg.Team)
	}
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(filepath.Base(cfg.Folder())))
	id, err := team.ParseTeamID(strings.Trim(name, "-"))
	if err != nil {
		id = team.DefaultTeam
	}
	return string(id)
}

// ask asks a person for what only they know. An empty line takes the value in brackets. Error: InvalidState
// if the input ends.
func (s *newSettings) ask(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	for _, q := range []struct {
		what  string
		value *string
		check func(string) error
	}{
		{"Name of the team", &s.Team, func(v string) error { _, err := team.ParseTeamID(v); return err }},
		{"What it is for, in a line", &s.Description, func(string) error { return nil }},
		{"Model, by its name at the endpoint", &s.Model, func(string) error { return nil }},
		{"Base URL of the endpoint (nothing: OpenAI's)", &s.BaseURL, checkBaseURL},
		{"Most teammates at the same time", &s.MaxTeammates, checkTeammates},
	} {
		for {
			fmt.Fprintf(out, "%s [%s]: ", q.what, *q.value)
			if !lines.Scan() {
				fmt.Fprintln(out)
				return team.Errorf(team.InvalidState, "the answers ended early: %w", cmp.Or(lines.Err(), io.EOF)).WithHint("nothing is written")
			}
			v := cmp.Or(strings.TrimSpace(lines.Text()), *q.value)
			err := q.check(v)
			if err == nil {
				*q.value = v
				break
			}
			fmt.Fprintln(out, printable(team.Line(err)))
		}
	}
	return nil
}

func checkBaseURL(v string) error {
	if v != "" && !config.IsBaseURL(v) {
		return team.Errorf(team.InvalidArgument, "%.80q is no http or https URL such as http://127.0.0.1:8000/v1", v)
	}
	return nil
}

func checkTeammates(v string) error {
	n, err := strconv.Atoi(v)
	if err != nil {
		return team.Errorf(team.InvalidArgument, "%.40q is not a whole number", v)
	}
	return team.Team{MaxTeammates: n}.Validate()
}

// write writes the settings into a new file, which must not exist.
func (s newSettings) write(file string) error {
	for _, v := range []*string{&s.Team, &s.Description, &s.Model, &s.BaseURL} {
		if *v == "" {
			continue
		}
		text, err := yaml.Marshal(*v) // quoted where it needs to be
		if err != nil {
			return err
		}
		*v = strings.TrimSpace(string(text))
	}
	var b bytes.Buffer
	if err := template.Must(template.New("team.yaml").Parse(initTemplate)).Execute(&b, s); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return settingsThere(file)
	}
	if err == nil {
		_, err = f.Write(b.Bytes())
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return team.Errorf(team.InvalidState, "%s cannot be written: %w", file, err)
	}
	return nil
}
