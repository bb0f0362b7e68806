package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/agent/engine"
	"agentteam/pkg/execenv/projectcontext"
	"agentteam/pkg/model"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// reads makes the tool look read the file of that name.
func (r *rig) reads(file string) {
	r.tools["look"] = func(context.Context, tool.Call) tool.Result {
		return tool.Result{Content: "read", Effects: tool.Effects{Touched: file}}
	}
	r.opts.Folders = func(_ context.Context, file string, skip func(string) bool) (found []Folder) {
		name := file[:strings.LastIndex(file, "/")]
		if !skip(name) {
			found = append(found, Folder{name, []projectcontext.File{{Name: name + "/AGENTS.md", Text: "rules of " + name + strings.Repeat(" as ever", 20)}}})
		}
		return found
	}
}

// What the repository states of a folder is told with the results of the first call that reads a file
// there, once in a conversation, and named in the heartbeat.
func TestTellsFolders(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.reads("api/x.go")
		r.says("!look", "!look", "done")
		r.start()
		r.post(1, team.UserAgent, team.MsgUser, "go")
		r.wantKinds("start mail turn result project turn result turn end")
		last := transcript(r.asked[2].Messages)
		if strings.Count(last, "rules of api") != 1 || !strings.Contains(last, "it grants nothing") {
			t.Errorf("the model is told\n%s", last)
		}
		if f := r.beat.Project; len(f) != 1 || f[0].File != "api/AGENTS.md" || f[0].Bytes == 0 {
			t.Errorf("the heartbeat has %v", f)
		}
		r.stop()
		r.opts.Member.Incarnation = 2
		r.says("!look", "done")
		r.start() // a successor goes on with what was told
		r.post(2, team.UserAgent, team.MsgUser, "again")
		if last = transcript(r.asked[len(r.asked)-1].Messages); strings.Count(last, "rules of api") != 1 {
			t.Errorf("after a restart the model is told\n%s", last)
		}
	})
}

// What stands in the tree of a task comes with it, if that is not what the system message states.
func TestTellsWhatStandsInTheTree(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		was, is := []projectcontext.File{{Name: "AGENTS.md", Text: "old rules"}}, []projectcontext.File{{Name: "AGENTS.md", Text: "old rules"}}
		r.journal[0].Place = &projectcontext.Place{Project: was}
		r.opts.Folders = func(context.Context, string, func(string) bool) []Folder { return []Folder{{Top, is}} }
		r.decide = func([]*model.Message) string { return "well" }
		r.start()
		if got := newTask(r, 1); strings.Contains(got, "rules") {
			t.Errorf("told although nothing has changed:\n%s", got)
		}
		is[0].Text = "new rules"
		if got := newTask(r, 2); !strings.Contains(got, "They take the place of those in the system message") || !strings.Contains(got, "new rules") {
			t.Errorf("told:\n%s", got)
		}
		if f := r.beat.Project; len(f) != 1 || f[0].Bytes != len("new rules") {
			t.Errorf("the heartbeat has %v", f)
		}
	})
}

// It survives a compaction, within the room that there is, and is told anew for another task.
func TestFoldersSurviveCompaction(t *testing.T) {
	c := fold(t, mailRecord(1, team.UserAgent, team.MsgUser, "go"), turnRecord("ok"))
	for i := range 3 {
		c.enter(projectRecord(fmt.Sprintf("dir%d", i)))
	}
	text := c.background(nil, 4000)
	if strings.Count(text, "rules of dir") != 3 {
		t.Errorf("kept\n%s", text)
	}
	if small := c.background(nil, 400); strings.Count(small, "rules of dir") != 1 || !strings.Contains(small, "rules of dir2") || !strings.Contains(small, "dir1, dir0 are left out here") {
		t.Errorf("in little room\n%s", small)
	}
	if text := c.background(c.Messages, 4000); strings.Contains(text, "rules of") {
		t.Errorf("it is told twice\n%s", text)
	}
	if n := c.fresh("T-002", 4000); n.Folders != nil {
		t.Errorf("the next task begins with %v", n.Folders)
	}
}

// A subagent's does, too, beside what it was asked for, also once it was made anew from its record.
func TestFoldersOfSubagentSurviveCompaction(t *testing.T) {
	p := NewPart(team.Native)
	for _, r := range []journal.Record{{Kind: journal.Note, Text: "Look at api."}, turnRecord("ok"), projectRecord("api"), {Kind: journal.Note, Text: "and on"}} {
		if err := p.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		k := p.Kept(engine.Cut{Room: 4000})
		if !slices.Equal(k.Work, []string{"Look at api."}) || !strings.Contains(k.Before, "rules of api") || k.Missing != "" {
			t.Errorf("kept: %+v", k)
		}
		if err := p.Add(journal.Record{Kind: journal.Compact, Context: p.Context(*engine.NewConversation(), engine.Cut{})}); err != nil {
			t.Fatal(err)
		}
	}
}

// Of many folders some are only named.
func TestFoldersAreBounded(t *testing.T) {
	c := newConversation(team.Native)
	for i := range 9 {
		r := projectRecord(fmt.Sprintf("dir%d", i))
		r.Files[0].Text = strings.Repeat("x", projectcontext.MaxFolder-100)
		c.enter(r)
	}
	n := 0
	for _, m := range c.Messages {
		n += len(m.Content)
	}
	if n > maxFolders+9*300 || !c.in("dir8") || c.notedFiles()[8].LeftOut == 0 || c.notedFiles()[8].Bytes != 0 {
		t.Errorf("%d bytes are told of %v", n, c.notedFiles())
	}
}

func projectRecord(dir string) journal.Record {
	return journal.Record{Kind: journal.Project, Folder: dir, Files: []projectcontext.File{{Name: dir + "/AGENTS.md", Text: "rules of " + dir}}}
}

// What a compaction left out of one task's conversation refuses no call in the next.
func TestQuotedEndsWithTheWork(t *testing.T) {
	c := newConversation(team.Native)
	c.Quoted = true
	for what, n := range map[string]*Conversation{"the next task": c.fresh("T-002", 4000), "a goal": c.fresh("", 4000), "dropped work": c.dropped()} {
		if n.Quoted {
			t.Errorf("%s: a call as text is still refused", what)
		}
	}
}
