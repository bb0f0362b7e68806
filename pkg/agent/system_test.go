package agent

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentteam/pkg/agent/engine"
	"agentteam/pkg/execenv/projectcontext"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/team"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// The last line is the protocol's; scripts and people read it.
func TestSystem(t *testing.T) {
	record := team.Team{ID: "blue", Roles: map[string]team.Role{
		"leader":   {Name: "leader", Description: "leads", Instructions: "You plan first."},
		"tester":   {Name: "tester", Description: "runs the tests"},
		"explorer": {Name: "explorer", Description: "reads 代码 and answers questions"},
	}}
	at := projectcontext.Place{Workspace: "/srv/work space", Platform: "linux/amd64", Date: "2026-11-22"}
	full := at
	full.Git = "branch main, 2 files changed or new"
	full.Project = []projectcontext.File{{Name: "../AGENTS.md", Text: "Run 'make lint' before you finish.\n<task id=\"x\">\n", LeftOut: 70},
		{Name: "../docs/style.md", By: "../CLAUDE.md", Text: "Be brief.", Faults: []string{"@../x.md is not followed: it leads out of the repository"}}}
	trees := record
	trees.Branch = &team.GoalBranch{}
	for name, tt := range map[string]struct {
		member team.Member
		role   team.Role
		at     projectcontext.Place
		record team.Team
	}{
		"leader":   {team.Member{AgentID: team.Leader, Role: "leader"}, record.Roles["leader"], full, record},
		"teammate": {team.Member{AgentID: "tester-1", Role: "tester", Prompt: "\nTest the parser 🧪.\n"}, team.Role{Instructions: "You run tests.\n\nYou do not fix what fails.\n"}, full, record},
		"bare":     {team.Member{AgentID: "tester-2", Role: "tester", Prompt: " \n"}, team.Role{}, at, record},
		"trees":    {team.Member{AgentID: "tester-2", Role: "tester"}, team.Role{}, at, trees},
	} {
		t.Run(name, func(t *testing.T) {
			got := System(tt.record, tt.member, tt.role, tt.at)
			if want := "\nYou are " + string(tt.member.AgentID) + ", role " + tt.member.Role + ", in team blue.\n"; !strings.HasSuffix(got, want) {
				t.Errorf("it does not end with %q:\n%s", want, got)
			}
			golden(t, "system-"+name, got)
		})
	}
}

// Two members of a role differ in their last line only, and members of other roles behind what is of all: an endpoint
// caches prompts by their beginning.
func TestMembersBeginAlike(t *testing.T) {
	at := projectcontext.Place{Workspace: "/srv", Date: "2026-11-22", Project: []projectcontext.File{{Name: "AGENTS.md", Text: "Be brief."}}, Skills: []string{"charts: draws"}}
	of := func(name team.AgentID, role string) string {
		return System(team.Team{ID: "blue"}, team.Member{AgentID: name, Role: role}, team.Role{Instructions: "You are a " + role + "."}, at)
	}
	common, alike := strings.CutSuffix(of("coder-1", "coder"), "You are coder-1, role coder, in team blue.\n")
	if !alike || !strings.HasPrefix(of("coder-2", "coder"), common) {
		t.Errorf("two coders begin otherwise:\n%s", common)
	}
	if all, _, _ := strings.Cut(common, "You are a coder."); len(all) == len(common) || !strings.Contains(all, "Be brief.") || !strings.HasPrefix(of("tester-1", "tester"), all) {
		t.Errorf("a tester does not begin with\n%s", all)
	}
}

// A subagent works where its owner does: in the folder of all, or in a tree that is its owner's.
func TestSystemOfSubagent(t *testing.T) {
	owner, at := team.Member{AgentID: "coder-1", Role: "coder"}, projectcontext.Place{Workspace: "/srv/trees/t-001", Platform: "linux/amd64", Date: "2026-11-22"}
	for on, want := range map[*team.GoalBranch]string{
		nil:                  "workspace: /srv/trees/t-001 (the shell starts here, paths are relative to it). The whole team works in it, so read a file again before you edit it.\n",
		new(team.GoalBranch): "workspace: /srv/trees/t-001 (the shell starts here, paths are relative to it). It is the tree of coder-1, in which no other member works.\n",
	} {
		got := Subagent(team.Team{ID: "blue", Branch: on}, owner, "coder-1.a1b2c3d", team.Role{Name: "tester"}, at, true)
		if !strings.Contains(got, want) {
			t.Errorf("with the line %+v it is given\n%s", on, got)
		}
	}
}

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is another (go test -update accepts it):\n%s", file, got)
	}
}

// What a successor is told of the place stays byte for byte, unless more than git has
// changed, or a leader has a new goal.
func TestSystemStays(t *testing.T) {
	was := projectcontext.Place{Workspace: "/srv", Platform: "linux/amd64", Date: "2026-11-22", Git: "branch main, clean", Project: []projectcontext.File{{Name: "AGENTS.md", Text: "Be brief."}}}
	start := func(goal int, change func(*projectcontext.Place)) journal.Record {
		p := was
		change(&p)
		return journal.Record{Kind: journal.Start, Goal: goal, Place: &p}
	}
	same := func(*projectcontext.Place) {}
	committed := func(p *projectcontext.Place) { p.Git = "branch main, 3 files changed or new" }
	for name, tt := range map[string]struct {
		records []journal.Record
		git     string
	}{
		"git only":       {[]journal.Record{start(1, same), start(1, committed)}, was.Git},
		"another folder": {[]journal.Record{start(1, same), start(1, func(p *projectcontext.Place) { committed(p); p.Workspace = "/srv2" })}, "branch main, 3 files changed or new"},
		"the project's instructions": {[]journal.Record{start(1, same), start(1, func(p *projectcontext.Place) {
			committed(p)
			p.Project = []projectcontext.File{{Name: "AGENTS.md", Text: "Be thorough."}}
		})},
			"branch main, 3 files changed or new"},
		"a new goal":          {[]journal.Record{start(1, same), start(2, committed)}, "branch main, 3 files changed or new"},
		"after a new context": {[]journal.Record{start(1, same), {Kind: journal.Compact, Context: engine.JSON(fold(t, start(1, same)))}, start(1, committed)}, was.Git},
	} {
		if c := fold(t, tt.records...); c.Place == nil || c.Place.Git != tt.git {
			t.Errorf("%s: the place is %+v", name, c.Place)
		}
	}
}

// A member learns which submodules have no files, and where it may read them.
func TestSystemNamesEmptySubmodules(t *testing.T) {
	record := team.Team{ID: "blue", Workspace: "/srv/shop/app", Branch: &team.GoalBranch{}, Policy: team.Policy{Paths: team.Paths{Read: []string{"/srv/shop/app/vendor", "/srv/shop/app/lib-old"}}}}
	at := projectcontext.Place{Workspace: "/cache/trees/t-001/app", Submodules: []string{"vendor/ui", "lib<task"}}
	got := System(record, team.Member{AgentID: "coder-1", Role: "coder"}, team.Role{Name: "coder"}, at)
	for _, want := range []string{"\nsubmodule: vendor/ui has no files here; its files are for reading in /srv/shop/app/vendor/ui\n", "\nsubmodule: lib&lt;task has no files here; do not fill it: a person can have its files read by \"paths\" of the team\n</environment>"} {
		if !strings.Contains(got, want) {
			t.Errorf("it lacks %q:\n%s", want, got)
		}
	}
	record.Branch = nil // then it works in the folder itself
	if got := System(record, team.Member{AgentID: "coder-1"}, team.Role{Name: "coder"}, at); strings.Contains(got, "for reading") {
		t.Errorf("in the shared folder it is told\n%s", got)
	}
}

// The tree of a successor is another than the one that is still in use. Its system message is the
// same: a tree and its branch are the runtime's.
func TestSystemInAnotherTree(t *testing.T) {
	record := team.Team{ID: "blue", Branch: &team.GoalBranch{}, Roles: map[string]team.Role{"leader": {Name: "leader"}}}
	at := projectcontext.Place{Workspace: "/cache/trees/leader.0", Platform: "linux/amd64", Date: "2026-11-22", Git: "branch work/at.leader.0, clean"}
	next := at
	next.Workspace, next.Git = "/cache/trees/leader.0.2", "branch work/at.leader.0.2, 3 files changed or new"
	m := team.Member{AgentID: team.Leader, Role: "leader"}
	first, second := System(record, m, record.Roles["leader"], at), System(record, m, record.Roles["leader"], next)
	if first != second {
		t.Errorf("it was\n%s\nand is\n%s", first, second)
	}
	record.Branch = nil
	if shared := System(record, m, record.Roles["leader"], at); !strings.Contains(shared, "git: branch work/at.leader.0, clean") {
		t.Errorf("in a folder of the user's the branch is not told:\n%s", shared)
	}
}

// The task block tells all that decides how the task is done, and nothing that is not so. The last one is of a task
// that was taken by a call.
func TestTaskBlock(t *testing.T) {
	task := team.Task{ID: "T-004", Title: "Add a </task> schema", Description: "From the inventory write schema.graphql.\n", CreatedBy: team.Leader,
		Check: "test -s schema.graphql", DeliverableReq: true, DeliverablePath: "deliverables/T-004-add-a-schema.md", Attempts: 1}
	inputs := []team.Input{
		{Task: "T-001", Title: "Write the inventory", By: "explorer-1", Summary: "5 endpoints;\nthe table is in the file.", Path: "deliverables/T-001-write-the-inventory.md"},
		{Task: "T-002", Title: "Ask around", By: "coder-1", Summary: "nobody minds </task X>" + strings.Repeat(" at all", 1000)},
	}
	bare := team.Task{ID: "T-001", Title: "Look", DeliverablePath: "deliverables/T-001-look.md"}
	again := bare
	again.Returned = []team.Try{{By: "coder-1", Epoch: 1, Commit: strings.Repeat("1", 40)}, {By: "coder-2", Epoch: 3, Commit: strings.Repeat("2", 40), Reason: "it conflicts.\n\tThe line has </task MARK02>:\n+x\n"}}
	golden(t, "task-blocks", taskBlock(task, inputs, team.Inherited{Note: "Your plan p1 waits.", Plan: "first </task>\nthen", Asked: []team.Message{{ID: "q1", From: "coder-2", To: team.UserAgent, Content: "Which library?"}}, Answers: map[string]team.Message{"q1": {ID: "a1", From: team.UserAgent, Content: "graphql-core"}}}, "MARK00", &team.Try{By: "coder-2", Reason: "graphql-core is not\ninstalled <mail"}, nil)+"\n\n"+taskBlock(bare, nil, team.Inherited{}, "MARK01", nil, nil)+"\n\n"+taskBlock(again, nil, team.Inherited{}, "MARK02", &again.Returned[1], nil)+
		"\n\n"+taskBlock(again, nil, team.Inherited{}, "MARK03")+"\n\n"+taskBlock(bare, nil, team.Inherited{}, "MARK04", &team.Try{By: "coder-2", Epoch: 2, Reason: "its process was stopped", Commit: strings.Repeat("3", 40), Unfinished: true, LeftOut: "x.bin (70 MiB)", Host: "alpha"}, nil)+"\n")
}
