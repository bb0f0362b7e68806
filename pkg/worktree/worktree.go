// Package worktree has the members of a team work on the team's line: each task in a separate
// tree, what is completed merged by the queue, and who holds no task in a tree at the line's head.
//
// It joins what others do: package line the git side, package merge the queue and its records,
// package board the tasks, and the [workspace.Source] of the process what runs commands. Of teams
// whose members share the workspace it gives what that source gives.
package worktree

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"agentteam/pkg/board"
	"agentteam/pkg/broker"
	"agentteam/pkg/line"
	"agentteam/pkg/merge"
	"agentteam/pkg/roster"
	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
	"agentteam/pkg/tool/workspace"
)

// Options are what a member's line is made of. All are required, unless a comment says otherwise.
type Options struct {
	Process string          // names this process in the queue's lease
	Team    *broker.Storage // of the team
	Record  func() team.Team
	Member  team.Member
	Hand    *board.Hand      // of the member
	Source  workspace.Source // of the process
	Level   Level            // nil: commands run in no sandbox that is known
	Dir     string           // below which each team has its folder; default: agentteam/lines in the user's cache folder
	Logger  *slog.Logger     // default: discard
}

// Level returns in what sandbox the commands of a role run here.
type Level func(ctx context.Context, t team.Team, role string) team.Sandbox

// Line is the line of a team as one member works on it. It is the [workspace.Source] of that
// member. Safe for concurrent use.
type Line struct {
	o       Options
	records *merge.Records
	tasks   tasks
	roster  *roster.Roster

	mu    sync.Mutex // held while the repository is opened
	site  *merge.Site
	queue *merge.Queue
	open  map[string]*place // the trees that are open here, by name
	work  sync.WaitGroup    // trees that are being removed
}

// place is an open tree with the workspace in it.
type place struct {
	tree *line.Tree
	ws   *workspace.Workspace
}

// New returns a member's line. It opens nothing yet.
func New(o Options) *Line {
	o.Logger = telemetry.OrDiscard(o.Logger)
	b := board.New(o.Team.Bucket, board.Options{Logger: o.Logger})
	return &Line{o: o, records: merge.New(o.Team), tasks: tasks{b}, roster: roster.New(o.Team), open: map[string]*place{}}
}

// at opens the repository and makes the queue, once.
func (l *Line) at(ctx context.Context) (*merge.Site, *merge.Queue, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.site != nil {
		return l.site, l.queue, nil
	}
	site, err := merge.At(ctx, l.o.Dir, l.o.Team, l.o.Record())
	if err != nil {
		return nil, nil, err
	}
	queue, err := merge.NewQueue(merge.Options{Site: site, Tasks: l.tasks, Checker: checker{l}, Process: l.o.Process + "-" + string(l.o.Member.AgentID),
		Lease: l.o.Record().Lease(), Logger: l.o.Logger})
	if err != nil {
		return nil, nil, err
	}
	l.site, l.queue = site, queue
	return site, queue, nil
}

// Head is the line's head as it was heard of last; "" if there is no line, or nothing was heard.
func (l *Line) Head() line.Hash {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queue == nil {
		return ""
	}
	return l.queue.Seen()
}

// Open implements [workspace.Source]. In a team on the line a member that holds a task has a
// separate tree, made at the line's head and kept until the task is over; a later incarnation goes
// on in it. Who holds none has a tree that is at the head whenever it is opened, and may not
// write there by file tools: no one would merge it.
//
// Errors besides those of the source: Unavailable without git, or without the line.
func (l *Line) Open(ctx context.Context, w workspace.Work, o workspace.Options) (*workspace.Workspace, func(), error) {
	if !w.Team.OnLine() || w.Member.AgentID == "" {
		return l.o.Source.Open(ctx, w, o)
	}
	site, _, err := l.at(ctx)
	if err != nil {
		return nil, nil, err
	}
	head, err := site.Bring(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("the line of team %s: %w", w.Team.ID, err)
	}
	tree, err := l.tree(ctx, site.Repo, w, head)
	if err != nil {
		return nil, nil, err
	}
	if w.Task.ID == "" {
		allowed := o.Writable
		o.Writable = func(name string) error {
			if allowed != nil {
				if err := allowed(name); err != nil {
					return err
				}
			}
			return team.Errorf(team.InvalidState, "%s is not written: you hold no task, and only a task's files are merged", name).
				WithModelHint("claim a task first, or create one for yourself")
		}
	}
	w.Tree = &workspace.Tree{Root: tree.Root, Dir: tree.Dir, ReadOnly: []string{tree.Objects()}}
	ws, release, err := l.o.Source.Open(ctx, w, o)
	if err == nil && w.Task.ID == "" && tree.Base != head {
		if err = l.forward(ctx, tree, ws, head); err != nil {
			release()
		}
	}
	if err != nil {
		_ = tree.Close() // the error is told
		return nil, nil, err
	}
	name := filepath.Base(tree.Root)
	l.mu.Lock()
	l.open[name] = &place{tree, ws}
	l.mu.Unlock()
	return ws, func() {
		l.mu.Lock()
		delete(l.open, name)
		l.mu.Unlock()
		release()
		l.leave(w, tree)
	}, nil
}

// tree opens the tree for w, or makes it at head. One that a frozen process of the member still
// has is left to that.
func (l *Line) tree(ctx context.Context, repo *line.Repo, w workspace.Work, head line.Hash) (*line.Tree, error) {
	p := line.Plan{Name: name(w), At: head, Member: w.Member.AgentID, From: line.Checkout{Prefix: w.Team.Line.Prefix}}
	t, err := repo.Tree(ctx, p)
	if errors.Is(err, team.Busy) {
		p.Name += "." + strconv.FormatUint(w.Member.Incarnation, 10)
		t, err = repo.Tree(ctx, p)
	}
	return t, err
}

// name is that of the tree for w. Each hold of a task has another one, also of the same member.
func name(w workspace.Work) string {
	if w.Task.ID == "" {
		return "at." + who(w.Member)
	}
	since := int64(0)
	if w.Task.ClaimedAt != nil {
		since = w.Task.ClaimedAt.UnixMilli()
	}
	return fmt.Sprintf("%s.%s.%s", strings.ToLower(string(w.Task.ID)), who(w.Member), strconv.FormatInt(since, 36))
}

// who is a member in the names of its trees, where a dot ends it.
func who(m team.Member) string { return string(m.AgentID) }

// forward brings the tree of a member without a task to the head. What the member has changed
// there by commands is lost: nothing would merge it.
func (l *Line) forward(ctx context.Context, t *line.Tree, ws *workspace.Workspace, head line.Hash) error {
	moved, err := t.Forward(ctx, ws.Commands(), t.Base, head)
	if err == nil && !moved {
		l.o.Logger.WarnContext(ctx, "files that were changed without a task are not brought forward", "agent", l.o.Member.AgentID, "tree", t.Root)
	}
	return err
}

// leave gives a tree up. It is removed once its task is over for the member.
func (l *Line) leave(w workspace.Work, t *line.Tree) {
	held, _ := l.o.Hand.Task()
	if w.Task.ID == "" || name(workspace.Work{Member: w.Member, Task: held}) == name(w) {
		if err := t.Close(); err != nil {
			l.o.Logger.Warn("a tree was not given up", "tree", t.Root, "err", err)
		}
		return
	}
	l.work.Go(func() {
		if err := t.Remove(); err != nil {
			l.o.Logger.Warn("the tree of a task that is over was not removed", "tree", t.Root, "err", err)
		}
	})
}

// Leave removes the trees of the member, which has left the team. Nothing of them may be open.
func (l *Line) Leave() error {
	l.mu.Lock()
	site := l.site
	l.mu.Unlock()
	if site == nil {
		return nil
	}
	who := who(l.o.Member)
	_, err := site.Repo.Sweep(func(tree string) bool {
		_, of, _ := strings.Cut(tree, ".")
		of, _, _ = strings.Cut(of, ".")
		return of != who
	})
	return err
}

// tidyEvery is how often trees of tasks that are over are looked for.
const tidyEvery = 10 * time.Minute

// Run takes part in the queue while the team is on the line, and removes trees of what is over,
// until ctx ends; then it returns nil.
func (l *Line) Run(ctx context.Context) error {
	defer l.work.Wait()
	for !l.o.Record().OnLine() {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(roster.Interval):
		}
	}
	_, queue, err := l.at(ctx)
	if err != nil { // then other processes merge, and what is done here says why it cannot be
		l.o.Logger.WarnContext(ctx, "this process merges nothing", "err", err)
		<-ctx.Done()
		return nil
	}
	go l.tidy(ctx)
	return queue.Run(ctx)
}

// tidy removes, from time to time, the trees of tasks that are over.
func (l *Line) tidy(ctx context.Context) {
	for {
		if err := l.sweep(ctx); err != nil && ctx.Err() == nil {
			l.o.Logger.WarnContext(ctx, "trees of tasks that are over were not removed", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(tidyEvery):
		}
	}
}

// sweep removes the trees of no task that is in progress, unless a process has them open.
func (l *Line) sweep(ctx context.Context) error {
	all, err := l.tasks.board.All(ctx)
	if err != nil {
		return err
	}
	members, err := l.roster.List(ctx)
	if err != nil {
		return err
	}
	keep := map[string]bool{}
	for _, m := range members {
		if m.HasProcess() {
			keep[name(workspace.Work{Member: m})] = true
		}
	}
	for _, t := range all {
		if t.Status == team.InProgress {
			keep[name(workspace.Work{Member: team.Member{AgentID: t.Assignee}, Task: t})] = true
		}
	}
	removed, err := l.site.Repo.Sweep(func(tree string) bool { return keep[tree] })
	if len(removed) > 0 {
		l.o.Logger.DebugContext(ctx, "trees removed", "trees", removed)
	}
	return err
}
