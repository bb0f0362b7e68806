package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"agentteam/pkg/client"
	"agentteam/pkg/config"
	"agentteam/pkg/control"
	"agentteam/pkg/grant"
	"agentteam/pkg/hands"
	"agentteam/pkg/line"
	"agentteam/pkg/role"
	"agentteam/pkg/team"
)

// readDirs are folders beside the workspace that the members of a run may read.
type readDirs []string

// add adds them to the hands of the members. Error: InvalidArgument for a path that cannot be
// given.
func (dirs readDirs) add(h *team.Hands) (added bool, err error) {
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

// allow has the members of a team that is there read those folders, too.
func (dirs readDirs) allow(ctx context.Context, t *client.Team) error {
	if len(dirs) == 0 {
		return nil
	}
	record, err := t.Record(ctx)
	if err != nil {
		return err
	}
	h := record.Hands
	added, err := dirs.add(&h)
	if err != nil || !added {
		return err
	}
	_, err = t.Choose(ctx, team.Choices{Hands: &h})
	return err
}

const isolationUsage = "where tasks are done: worktree (each in a separate tree, then merged), shared, or auto: worktree where it can be (default auto)"

// tellHands prints what members may do with the machines that they work on, and where tasks are done.
func (a *app) tellHands(ctx context.Context, t *client.Team, s client.Status, cfg config.Config, p *pursuit) error {
	record, err := t.Record(ctx)
	if err != nil {
		return err
	}
	wish, dir := record, p.workspace
	if wish.Hands.Isolation = cmp.Or(team.Isolation(p.isolation), record.Hands.Isolation); p.resume {
		dir = record.Workspace
	}
	a.tell(handsLine(record, slices.Concat(s.Leaders, s.Standbys, s.Members)) + "; isolation: " + isolationOf(ctx, wish, dir, onThisMachine(cfg, p)))
	if !sameHands(cfg.Hands, record.Hands) {
		a.note(fmt.Sprintf("what members of team %s may do is stored with the team, and differs from the settings here; to take these over: teamctl teams set %s --from-settings", t.ID(), t.ID()))
	}
	return nil
}

// isolationOf is where the tasks of the team's present or next goal are done: worktree or shared. It
// is the team's wish where the workspace, dir, cannot be seen, and no leader has decided.
func isolationOf(ctx context.Context, t team.Team, dir string, here bool) string {
	wish := cmp.Or(t.Hands.Isolation, team.IsolationAuto)
	switch decided := t.Status == team.Active && t.Line != nil && t.Line.Goal >= t.NextGoal(); {
	case decided && t.Line.Why == "":
		return string(team.Worktrees)
	case decided, wish == team.Shared:
		return string(team.Shared)
	case !here || wish == team.Worktrees: // a leader that cannot have trees refuses
		return string(wish)
	}
	if _, err := line.Look(ctx, dir); err != nil {
		return string(team.Shared)
	}
	return string(team.Worktrees)
}

// sameHands reports whether the settings are those that the team has stored;
// folders of --read and rules that a person has added since aside.
func sameHands(settings, stored team.Hands) bool {
	covers := func(all, some []string) bool {
		return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
	}
	p, q := settings.Permissions, stored.Permissions
	return settings.Sandbox == stored.Sandbox && cmp.Or(settings.Isolation, team.IsolationAuto) == cmp.Or(stored.Isolation, team.IsolationAuto) && slices.Equal(settings.Network, stored.Network) && settings.PermissionMode == stored.PermissionMode &&
		settings.PermissionAsk == stored.PermissionAsk && slices.Equal(settings.Credentials, stored.Credentials) && slices.Equal(settings.Links, stored.Links) &&
		covers(stored.Paths.Read, settings.Paths.Read) && covers(stored.Paths.Write, settings.Paths.Write) &&
		covers(q.Deny, p.Deny) && covers(q.Ask, p.Ask) && covers(q.Allow, p.Allow)
}

// handsLine is "sandbox: bubblewrap 0.8.0; network: none", with what is different for roles.
func handsLine(record team.Team, procs []control.Process) string {
	h, sandbox := record.HandsOf(""), sandboxes(procs)
	switch {
	case h.Sandbox != "" && h.Sandbox != team.SandboxAuto && !strings.HasPrefix(sandbox, string(h.Sandbox)):
		sandbox = string(h.Sandbox) + ", on processes with " + sandbox
	}
	network := h.Network.String()
	for _, name := range slices.Sorted(maps.Keys(record.Roles)) {
		of := record.HandsOf(name)
		if !slices.Equal(of.Network, h.Network) {
			network += fmt.Sprintf(", %s: %s", name, of.Network)
		}
		if of.PermissionMode != h.PermissionMode {
			network += fmt.Sprintf("; permission_mode of %s: %s", name, of.PermissionMode)
		}
	}
	if !slices.ContainsFunc(procs, func(p control.Process) bool { return p.Sandbox != string(team.Unconfined) }) {
		return "sandbox: " + sandbox
	}
	return fmt.Sprintf("sandbox: %s; network: %s", sandbox, network)
}

// sandboxes is in what sandboxes processes run commands, each once.
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

// lookFirst is what is to be done about files that other programs obey.
const lookFirst = "other programs run what these name, so look at them before you open the folder"

// tellMade prints which files that other programs obey are new or changed in dir. had is what was there, of
// [hands.Obeyed].
func (a *app) tellMade(dir string, had map[string]string) {
	has := hands.Obeyed(dir)
	var made, changed []string
	for _, name := range slices.Sorted(maps.Keys(has)) {
		switch before, was := had[name]; {
		case !was:
			made = append(made, name)
		case before != has[name]:
			changed = append(changed, name)
		}
	}
	var all []string
	if len(made) > 0 {
		all = append(all, fmt.Sprintf("new in %s: %s", dir, strings.Join(made, ", ")))
	}
	if len(changed) > 0 {
		all = append(all, fmt.Sprintf("changed in %s: %s", dir, strings.Join(changed, ", ")))
	}
	if len(all) > 0 {
		a.tell(strings.Join(all, "; ") + "; " + lookFirst)
	}
}

// tellWithheld prints what files here would grant if a person had trusted them.
func (a *app) tellWithheld(cfg config.Config, roles role.Roles) {
	var all []grant.Withheld
	if w := cfg.Withheld(); len(w.Grants) > 0 {
		all = append(all, w)
	}
	for _, name := range slices.Sorted(maps.Keys(roles.Withheld)) {
		all = append(all, roles.Withheld[name])
	}
	for _, w := range all {
		a.tell(inOneLine(w.String()))
	}
	for _, line := range slices.Concat(cfg.NeverMatch(), cfg.UnknownModels()) {
		a.tell(line)
	}
}

// rulesLine is "deny A, B; ask C; allow D".
func rulesLine(p team.Permissions) string {
	var parts []string
	for _, list := range []struct {
		name  string
		rules []string
	}{{"deny", p.Deny}, {"ask", p.Ask}, {"allow", p.Allow}} {
		if len(list.rules) > 0 {
			parts = append(parts, list.name+" "+strings.Join(list.rules, ", "))
		}
	}
	return strings.Join(parts, "; ")
}
