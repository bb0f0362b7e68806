package role

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentteam/pkg/team"
	"agentteam/pkg/team/strictyaml"
	"agentteam/pkg/tool/safefs"
)

// Known reports whether members may have a tool of that name, in any dialect.
type Known func(tool string) bool

// Unknown returns notices of the names in tool lists that no tool has, in order of the roles.
func (r Roles) Unknown(known Known) (notices []Notice) {
	for _, tools := range r.tools {
		notices = append(notices, unknown(tools, known)...)
	}
	slices.SortStableFunc(notices, Notice.Compare)
	return notices
}

// Compare orders notices by file, line and column.
func (n Notice) Compare(o Notice) int {
	if n.File != o.File {
		return strings.Compare(n.File, o.File)
	}
	if n.Line != o.Line {
		return n.Line - o.Line
	}
	return n.Column - o.Column
}

// unknown returns the notices of unknown tools. Names in one line share a notice.
func unknown(tools []Notice, known Known) (notices []Notice) {
	var lists [2][]Notice // of names: of servers, and of nothing
	for _, t := range tools {
		name := strings.TrimSuffix(t.Text, team.OnlyDeliverable)
		bare, _, narrowed := strings.Cut(name, "(")
		switch {
		case name == "*", name == "none" && len(tools) == 1, known(name):
		case narrowed && known(bare):
			t.Text = team.Clip(name, 80) + " is left out, for a tool cannot be narrowed here; name " + bare + ", and state under permissions what it may do"
			notices = append(notices, t)
		case strings.HasPrefix(name, "mcp__"):
			lists[0] = append(lists[0], t)
		default:
			lists[1] = append(lists[1], t)
		}
	}
	for i, what := range []string{"tools of MCP servers are left out, for there are none yet: ", "tools that are not here are left out: "} {
		for len(lists[i]) > 0 {
			first := lists[i][0]
			var names []string
			lists[i] = slices.DeleteFunc(lists[i], func(t Notice) bool {
				if t.Line == first.Line {
					names = append(names, team.Clip(t.Text, 80))
				}
				return t.Line == first.Line
			})
			first.Text, first.mild = what+strings.Join(names, ", "), i == 0
			notices = append(notices, first)
		}
	}
	return notices
}

// Report is the result of a check of role files.
type Report struct {
	Files   []string `json:"files"`
	Faults  []Notice `json:"faults"`  // of our files
	Notices []Notice `json:"notices"` // of those of other programs, and what is only to be known
}

// Check checks role files strictly: the named ones, else all that apply in dir. In a file of ours an unknown key or
// tool is a fault, and so are two files of a folder with one name; a file for another program has notices only. It
// stores nothing. Errors: NotFound for a named file that does not exist.
func Check(dir string, files []string, known Known) (Report, error) {
	rep := Report{Files: []string{}, Faults: []Notice{}, Notices: []Notice{}}
	named := len(files) > 0
	if !named {
		for _, s := range sources(dir) {
			found, _ := markdown(safefs.FS(s.path), s.foreign) // a folder that is not there has none
			for _, f := range found {
				files = append(files, filepath.Join(s.path, f))
			}
		}
	}
	first := map[[2]string]string{}
	for _, file := range files {
		src, err := content(safefs.FS(filepath.Dir(file)), filepath.Base(file))
		if errors.Is(err, fs.ErrNotExist) && named {
			return rep, team.Errorf(team.NotFound, "there is no file %s", file)
		}
		if err == nil && !named && !hasFrontMatter(src) { // such as a README.md
			continue
		}
		rep.Files = append(rep.Files, file)
		rep.check(file, src, err, known, first)
	}
	return rep, nil
}

// check checks a file; err is the error of reading it. first has the file of each name in a folder.
func (rep *Report) check(file string, src []byte, err error, known Known, first map[[2]string]string) {
	foreign := isForeign(file)
	var p parsed
	switch {
	case err != nil:
	case foreign:
		p, err = parseForeign(file, src, nil)
	default:
		p, err = parse(file, src, nil)
	}
	found := append(p.notices, unknown(p.tools, known)...)
	if err == nil {
		key := [2]string{filepath.Dir(file), p.Name}
		if other := first[key]; other != "" {
			err = p.at(team.Errorf(team.InvalidArgument, "role %s is in %s already", p.Name, other).WithHint("give one of them another name"))
		} else {
			first[key] = file
		}
	}
	for _, fault := range strictyaml.Faults(err) {
		n := noticeOf(file, fault)
		n.Out = foreign
		found = append(found, n)
	}
	slices.SortStableFunc(found, Notice.Compare)
	for _, n := range found {
		if foreign || n.mild {
			rep.Notices = append(rep.Notices, n)
		} else {
			rep.Faults = append(rep.Faults, n)
		}
	}
}

// template is the content of a new role file; NAME stands for the role's name.
const template = `---
name: NAME
# The leader chooses a role by this line.
description: Say in a sentence what a NAME does, and when to choose it.

# tools: Read, Grep, Glob         # default: all; [] = none
# disallowedTools: Bash           # taken away from those
# model: small                    # an alias of team.yaml; default: the team's
# max_turns: 80                   # of one run
# turns_without_progress: 400     # in a row; then the task goes back
# effort: high                    # of the model's thinking
# plan_mode: true                 # changes nothing before its plan is approved
# approver: human                 # decides on those plans; default: leader
# max_instances: 2                # of its members, at a time
# auto_claim: false               # takes only tasks that are assigned to it
# idle_timeout: 15m               # leaves after so long without work
# background: true                # as a subagent: beside its owner's work
# color: cyan
# isolation: worktree             # its tasks are never done in the shared folder
# sandbox: bubblewrap             # what is stronger than the team's counts
# network: none                   # hosts need your trust: teamctl trust
# permissions: {deny: ["Bash(git push *)"]}
# permission_mode: default
# permission_ask: deny            # what a person would have to allow is refused
# credentials: [gh]
# paths: {read: [/opt/sdk], write: [~/.cache/shop]}
# worktree_links: [node_modules]  # ignored files that its trees have, for reading
# on_edit: [gofmt, -l, "{file}"]  # after each edit; its output joins the result
# dialect: claude
---
You are a NAME. Say here how the work is done, what to look at first, and what a good report holds.
`

// New writes a role file into the role files of dir, and returns its path. Errors: InvalidArgument for an invalid name;
// Conflict if the file exists; InvalidState if it cannot be written.
func New(dir, name string) (path string, err error) {
	r := team.Role{Name: name, Description: "d"}
	if err := r.Validate(); err != nil {
		return "", err
	}
	folder := filepath.Join(dir, ownDir)
	path = filepath.Join(folder, name+".md")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", team.Errorf(team.InvalidState, "%w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return "", team.Errorf(team.Conflict, "%s is there already", path).WithHint("change that file, or choose another name")
	}
	if err != nil {
		return "", team.Errorf(team.InvalidState, "%w", err)
	}
	_, err = f.WriteString(strings.ReplaceAll(template, "NAME", name))
	if err = errors.Join(err, f.Close()); err != nil {
		return "", team.Errorf(team.InvalidState, "%s: %w", path, errors.Join(err, os.Remove(path)))
	}
	return path, nil
}
