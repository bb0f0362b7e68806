package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/config/role"
	"agentteam/pkg/execenv"
	"agentteam/pkg/execenv/sandbox"
	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/team"
)

// readDirs are folders outside the workspace that a run's members may read.
type readDirs []string

// add adds them to the members' policy. Error: InvalidArgument for an invalid path.
func (dirs readDirs) add(h *team.Policy) (added bool, err error) {
	for _, dir := range dirs {
		abs, err := filepath.Abs(dir)
		if err == nil {
			abs, err = filepath.EvalSymlinks(abs)
		}
		if err == nil {
			err = team.CheckPath(abs)
		}
		if err != nil {
			return false, team.Errorf(team.InvalidArgument, "--read %s: %w", dir, err)
		}
		if !slices.Contains(h.Paths.Read, abs) {
			h.Paths.Read = append(slices.Clone(h.Paths.Read), abs)
			added = true
		}
	}
	return added, nil
}

// allow lets the members of an existing team read these folders too.
func (dirs readDirs) allow(ctx context.Context, t *client.Team) error {
	if len(dirs) == 0 {
		return nil
	}
	record, err := t.Record(ctx)
	if err != nil {
		return err
	}
	h := record.Policy
	added, err := dirs.add(&h)
	if err != nil || !added {
		return err
	}
	_, err = t.Choose(ctx, team.Choices{Policy: &h})
	return err
}

const isolationUsage = "where tasks are done: worktree (each in a separate tree, then merged), shared, or auto: worktree where it can be (default auto)"

// showPolicy prints what members may do on their machines, and where tasks are done.
func (a *app) showPolicy(ctx context.Context, t *client.Team, s client.Status, cfg config.Config, p *runRequest) error {
	record, err := t.Record(ctx)
	if err != nil {
		return err
	}
	wish, dir := record, p.workspace
	if wish.Policy.Isolation = cmp.Or(team.Isolation(p.isolation), record.Policy.Isolation); p.resume {
		dir = record.Workspace
	}
	procs := slices.Concat(s.Leaders, s.Standbys, s.Members)
	if !p.view.Full {
		procs = inBrief(procs)
	}
	a.notice(policyLine(record, procs) + "; isolation: " + isolationOf(ctx, wish, dir, onThisMachine(cfg, p)))
	if cfg.Sandbox != team.Confined && slices.ContainsFunc(procs, isConfined) { // which is the person's choice else
		a.notice(withoutBubblewrap(sandbox.InstallCommand()))
	}
	if !samePolicy(cfg.Policy, record.Policy) {
		a.note(fmt.Sprintf("what members of team %s may do is stored with the team, and differs from the settings here; to take these over: teamctl teams set %s --from-settings", t.ID(), t.ID()))
	}
	return nil
}

// inBrief removes the details of sandboxes, which `status`, `doctor` and --verbose show.
func inBrief(procs []control.Process) []control.Process {
	procs = slices.Clone(procs)
	for i, p := range procs {
		if !strings.HasPrefix(p.Sandbox, control.NoSandbox) {
			procs[i].Sandbox, _, _ = strings.Cut(p.Sandbox, " (")
		}
	}
	return procs
}

func isConfined(p control.Process) bool { return strings.HasPrefix(p.Sandbox, string(team.Confined)) }

// withoutBubblewrap returns a sentence about running without bubblewrap; install is the command that installs
// it, "" if it is installed.
func withoutBubblewrap(install string) string {
	if install == "" {
		return "bubblewrap does not work here, so commands make no sockets, and tests that listen on loopback fail; `teamctl doctor` shows the reason"
	}
	return "without bubblewrap commands make no sockets, and tests that listen on loopback fail; to install it: " + install
}

// isolationOf returns where the tasks of the team's current or next goal are done: worktree or shared. It is
// the team's wish where the workspace, dir, cannot be seen, and no leader has decided.
func isolationOf(ctx context.Context, t team.Team, dir string, here bool) string {
	wish := cmp.Or(t.Policy.Isolation, team.IsolationAuto)
	switch decided := t.Status == team.Active && t.Branch != nil && t.Branch.Goal >= t.NextGoal(); {
	case decided && t.Branch.Why == "":
		return string(team.Worktrees)
	case decided, wish == team.Shared:
		return string(team.Shared)
	case !here || wish == team.Worktrees: // a leader that cannot have trees refuses
		return string(wish)
	}
	if _, err := gitrepo.Inspect(ctx, dir); err != nil {
		return string(team.Shared)
	}
	return string(team.Worktrees)
}

// samePolicy reports whether the settings equal the team's stored ones, apart from folders of --read and
// rules that a person has added.
func samePolicy(settings, stored team.Policy) bool {
	covers := func(all, some []string) bool {
		return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
	}
	p, q := settings.Permissions, stored.Permissions
	return settings.Sandbox == stored.Sandbox && cmp.Or(settings.Isolation, team.IsolationAuto) == cmp.Or(stored.Isolation, team.IsolationAuto) && slices.Equal(settings.Network, stored.Network) && settings.PermissionMode == stored.PermissionMode &&
		settings.PermissionAsk == stored.PermissionAsk && slices.Equal(settings.Credentials, stored.Credentials) && slices.Equal(settings.Links, stored.Links) &&
		covers(stored.Paths.Read, settings.Paths.Read) && covers(stored.Paths.Write, settings.Paths.Write) &&
		covers(q.Deny, p.Deny) && covers(q.Ask, p.Ask) && covers(q.Allow, p.Allow)
}

// policyLine returns "sandbox: bubblewrap 0.8.0; network: none", with the differences for roles.
func policyLine(record team.Team, procs []control.Process) string {
	h, boxes := record.PolicyOf(""), sandboxes(procs)
	if h.Sandbox != "" && h.Sandbox != team.SandboxAuto && !strings.HasPrefix(boxes, string(h.Sandbox)) {
		boxes = string(h.Sandbox) + ", on processes with " + boxes
	}
	network := h.Network.String()
	for _, name := range slices.Sorted(maps.Keys(record.Roles)) {
		of := record.PolicyOf(name)
		if !slices.Equal(of.Network, h.Network) {
			network += fmt.Sprintf(", %s: %s", name, of.Network)
		}
		if of.PermissionMode != h.PermissionMode {
			network += fmt.Sprintf("; permission_mode of %s: %s", name, of.PermissionMode)
		}
	}
	if !slices.ContainsFunc(procs, func(p control.Process) bool { return p.Sandbox != string(team.Unconfined) }) {
		return "sandbox: " + boxes
	}
	return fmt.Sprintf("sandbox: %s; network: %s", boxes, network)
}

// sandboxes lists the sandboxes in which processes run commands, each once.
func sandboxes(procs []control.Process) string {
	var found []string
	for _, p := range procs {
		level := p.Sandbox
		if level == string(team.Unconfined) {
			level += " (commands may do whatever the user of the process may, and reach any network)"
		}
		if level != "" && !slices.Contains(found, level) {
			found = append(found, level)
		}
	}
	return cmp.Or(strings.Join(found, "; "), "not known")
}

// kindsOfRuns are the kinds of files that programs act on, and advice for each.
var kindsOfRuns = []struct {
	runs execenv.Runs
	then string
}{
	{execenv.Unasked, "other programs run what these name, so look at them before you open the folder"},
	{execenv.OnWord, "these run on your word, so look at them before you build, push or start something"},
}

// printMade prints which files that programs on this machine act on are new, changed or gone in dir. had is
// the state before, from [execenv.ExecutableSettings].
func (a *app) printMade(dir string, had map[string]execenv.Found) {
	has := execenv.ExecutableSettings(dir)
	for _, kind := range kindsOfRuns {
		var made, changed, gone []string
		for _, name := range slices.Sorted(maps.Keys(has)) {
			switch before, was := had[name]; {
			case has[name].Runs != kind.runs:
			case !was:
				made = append(made, name)
			case before != has[name]:
				changed = append(changed, name)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(had)) {
			if _, is := has[name]; !is && had[name].Runs == kind.runs {
				gone = append(gone, name)
			}
		}
		var all []string
		for _, of := range []struct {
			what  string
			names []string
		}{{"new in", made}, {"changed in", changed}, {"gone from", gone}} {
			if len(of.names) > 0 {
				all = append(all, fmt.Sprintf("%s %s: %s", of.what, dir, strings.Join(of.names, ", ")))
			}
		}
		if len(all) > 0 {
			a.notice(strings.Join(append(all, kind.then), "; "))
		}
	}
}

// printRun prints which files of a difference programs on this machine act on.
func (a *app) printRun(files []gitrepo.File) {
	of := map[execenv.Runs][]string{}
	for _, f := range files {
		runs := execenv.RunsBy(f.Path)
		of[runs] = append(of[runs], printable(f.Path))
	}
	for _, kind := range kindsOfRuns {
		if names := of[kind.runs]; len(names) > 0 {
			a.note(strings.Join(names, ", ") + ": " + kind.then)
		}
	}
}

// printWaiting prints a line for each file here with keys that wait for trust.
func (a *app) printWaiting(cfg config.Config, roles role.Roles) {
	for _, w := range waits(cfg, roles) {
		a.notice(inOneLine(w.String()))
	}
	for _, line := range slices.Concat(cfg.NeverMatch(), cfg.UnknownModels()) {
		a.notice(line)
	}
}

// policyFields returns a policy as rows.
func policyFields(p team.Policy) (rows []field) {
	for _, right := range p.Describe() {
		rows = append(rows, field{right[0], right[1]})
	}
	return rows
}
