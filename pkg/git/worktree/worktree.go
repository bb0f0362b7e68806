// Package worktree gives each task its own git worktree and submits completed work to the merge
// queue. A member without a task works in a tree at the head of the team's integration branch.
//
// Package gitrepo does the git side, package mergequeue the queue and its records, package board
// the tasks; the [workspace.Source] of the process runs commands. Members that share the workspace
// get the folder of that source.
package worktree

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
	"agentteam/pkg/telemetry"
	"agentteam/pkg/tool/workspace"
)

// Options configure a member's workspaces. All are required, unless a comment states otherwise.
type Options struct {
	Process string          // names this process in the queue's lease
	Team    *broker.Storage // of the team
	Record  func() team.Team
	Member  team.Member
	Slot    *board.ClaimSlot      // of the member
	Source  workspace.Source      // of the process
	ToStore Bound                 // of the storing of unfinished work; nil: the context of the call
	Notify  Notify                // nil: the member is notified of nothing
	Peers   Peers                 // nil: no other member is known
	Level   Level                 // nil: commands run in no sandbox that is known
	May     May                   // nil: no rule denies a check
	Check   Check                 // of a task without changed files; nil: none has one
	Dir     string                // below which each team has its folder; default: agentteam/lines in the user's cache folder
	Logger  *slog.Logger          // default: discard
	Metrics prometheus.Registerer // of the member's queue; may be nil
}

// Level returns the sandbox in which the commands of a role run here.
type Level func(ctx context.Context, t team.Team, role string) team.Sandbox

// May returns an error if a rule denies, on this machine, the check of a task as a command of a role in dir.
type May func(ctx context.Context, id team.TaskID, role, check, dir string) error

// Check returns an error if the check of a task fails in a workspace.
type Check func(ctx context.Context, t team.Task, ws *workspace.Workspace) error

// Peers returns the state of the team's members.
type Peers func(context.Context) (explain.Situation, error)

// Bound returns a context that ends in time for the write that follows.
type Bound func(context.Context) (context.Context, context.CancelFunc)

// Notify sends a member a notice, which is stored once for each id within two minutes.
type Notify func(ctx context.Context, to team.AgentID, id, text string) error

// Workspaces are the trees of one member of a team. It is the [workspace.Source] of that member. Safe for concurrent use.
type Workspaces struct {
	o       Options
	records *mergequeue.Records
	tasks   tasks
	waits   patience
	ran     atomic.Bool // commands have run in the tree without a task since its last check

	opening sync.Mutex // one workspace at a time; taken before mu
	been    bool       // the tree of no task was opened before; guarded by opening
	leaving bool       // the member leaves: its notices go to the leader; guarded by opening

	marking       sync.Mutex   // while ran and its note beside the tree change
	running       int          // commands in the tree of no task; guarded by marking
	interruptions int          // of the tree of no task, in a row; guarded by opening
	behind        gitrepo.Hash // of the notice of that; guarded by opening

	swept uint64 // the bucket's revision at the last sweep of stored files; used by [Workspaces.tidy] alone

	mu    sync.Mutex // held while the repository is opened
	site  *mergequeue.Site
	queue *mergequeue.Queue
	open  map[string]*place // the trees that are open here, by [name]
	work  atomic.Int32      // trees that are being removed: a sync.WaitGroup takes no more while it is waited for
}

// place is an open tree. It may have several workspaces: one that a call still uses, and one that was opened after a person has
// changed the member's policy.
type place struct {
	tree  *gitrepo.Tree
	ws    *workspace.Workspace // the newest; nil once it is released
	users int                  // workspaces

	submitted atomic.Bool // its files wait to be merged: later changes would be lost
	over      atomic.Bool // all its files are stored, or no longer needed: without the task it can be removed
	leftOut   string      // the files that the refusal of a completion has named; used by [Workspaces.Complete] alone
}

// New returns a member's workspaces. It opens nothing yet.
func New(o Options) *Workspaces {
	o.Logger = telemetry.OrDiscard(o.Logger)
	if o.Notify == nil {
		o.Notify = func(context.Context, team.AgentID, string, string) error { return nil }
	}
	b := board.New(o.Team.Bucket, board.Options{Logger: o.Logger})
	return &Workspaces{o: o, records: mergequeue.New(o.Team), tasks: tasks{b, roster.New(o.Team)}, waits: usual, open: map[string]*place{}}
}

// at opens the repository and makes the queue, once.
func (l *Workspaces) at(ctx context.Context) (*mergequeue.Site, *mergequeue.Queue, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.site != nil {
		return l.site, l.queue, nil
	}
	site, err := mergequeue.At(ctx, l.o.Dir, l.o.Team, l.o.Record())
	if err != nil {
		return nil, nil, err
	}
	queue, err := mergequeue.NewQueue(mergequeue.Options{Site: site, Tasks: l.tasks, Checker: checker{l}, Process: l.o.Process + "-" + string(l.o.Member.AgentID),
		Check: func() string { return l.o.Record().Policies.Check }, Lease: l.o.Record().Lease(), Logger: l.o.Logger, Metrics: l.o.Metrics})
	if err != nil {
		return nil, nil, err
	}
	l.site, l.queue = site, queue
	return site, queue, nil
}

// Head returns the last known head of the integration branch; "" if there is no branch, or none is known.
func (l *Workspaces) Head() gitrepo.Hash {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queue == nil {
		return ""
	}
	return l.queue.Seen()
}

// Open implements [workspace.Source]. In a team with an integration branch a member that holds a task has a separate tree, made at
// the branch's head and kept until the task is over; a later incarnation continues in it. A member without a task has a tree that
// is at the head whenever it is opened, and may not write there by file tools: nothing would merge it. Changes of its commands
// there are kept as a commit, and the member gets a notice.
//
// Errors besides those of the source: Unavailable without git, or without the branch.
func (l *Workspaces) Open(ctx context.Context, w workspace.Work, o workspace.Options) (*workspace.Workspace, func(), error) {
	if !w.Team.HasBranch() || w.Member.AgentID == "" {
		return l.o.Source.Open(ctx, w, o)
	}
	l.opening.Lock()
	defer l.opening.Unlock()
	return l.openLocked(ctx, w, o)
}

// openLocked is Open in a team with an integration branch. The caller holds opening.
func (l *Workspaces) openLocked(ctx context.Context, w workspace.Work, o workspace.Options) (*workspace.Workspace, func(), error) {
	site, _, err := l.at(ctx)
	if err != nil {
		return nil, nil, err
	}
	head, err := site.Bring(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("the line of team %s: %w", w.Team.ID, err)
	}
	if w.Task.ID != "" {
		l.ahead(ctx, site.Repo, head)
	}
	p, err := l.acquire(ctx, site, w, head)
	if err != nil {
		return nil, nil, err
	}
	ws, release, err := l.enter(ctx, p, w, o)
	begun := p.tree.Begun
	p.tree.Begun = false
	switch {
	case err != nil:
	case w.Task.ID == "" && p.tree.Base != head:
		l.forward(ctx, site.Repo, p.tree, ws, head)
	case begun && p.tree.Base != head: // it was the tree of an earlier hold
		if _, failed := l.onto(ctx, site, w, p.tree, ws); failed != nil {
			l.o.Logger.WarnContext(ctx, "a tree continues at an older commit of the line", "task", w.Task.ID, "tree", p.tree.Root, "err", failed)
		}
	}
	if err != nil {
		l.leave(w, p)
		return nil, nil, err
	}
	l.mu.Lock()
	p.ws = ws
	l.mu.Unlock()
	return ws, func() {
		l.mu.Lock()
		if p.ws == ws { // its commands run no more
			p.ws = nil
		}
		l.mu.Unlock()
		release()
		l.leave(w, p)
	}, nil
}

// acquire returns the place of w, with one user more. A tree that this process has open is not
// opened again: it is locked, and another tree would lack the member's changes.
func (l *Workspaces) acquire(ctx context.Context, site *mergequeue.Site, w workspace.Work, head gitrepo.Hash) (*place, error) {
	l.mu.Lock()
	p := l.open[name(w)]
	if p != nil {
		p.users++
	}
	l.mu.Unlock()
	if p != nil {
		return p, nil
	}
	t, err := l.tree(ctx, site, w, head)
	if err != nil {
		return nil, err
	}
	p = &place{tree: t, users: 1}
	l.mu.Lock()
	l.open[name(w)] = p
	l.mu.Unlock()
	return p, nil
}

// enter opens a workspace in a tree.
func (l *Workspaces) enter(ctx context.Context, p *place, w workspace.Work, o workspace.Options) (*workspace.Workspace, func(), error) {
	allowed := o.Writable
	o.Writable = func(name string) error {
		p.over.Store(false)
		if allowed != nil {
			if err := allowed(name); err != nil {
				return err
			}
		}
		switch {
		case w.Task.ID == "":
			return team.Errorf(team.InvalidState, "%s is not written: you hold no task, and only a task's files are merged", name).
				WithModelHint("%s", l.toClaim())
		case p.submitted.Load():
			return waits("%s is not written: %s", name, w.Task.ID)
		}
		return nil
	}
	o.MayRun = func() error {
		p.over.Store(false)
		if p.submitted.Load() {
			return waits("the command is not run: %s", w.Task.ID)
		}
		return nil
	}
	if w.Task.ID == "" {
		o.Running = func() (ended func()) {
			l.runs(p.tree, 1)
			return func() { l.runs(p.tree, -1) }
		}
	}
	w.Tree = &workspace.Tree{Root: p.tree.Root, Dir: p.tree.Dir, ReadOnly: []string{p.tree.Objects()}, Shown: p.tree.Mounts}
	return l.o.Source.Open(ctx, w, o)
}

// waits returns the error for a change of files that wait to be merged as they are: the change would be lost.
func waits(format string, args ...any) error {
	return team.Errorf(team.InvalidState, format+" is completed, and may wait to be merged as it was", args...).
		WithModelHint("complete it again to wait for that, and create a task for what is left to do")
}

// tree opens the tree for w, or makes it at head. A tree that a frozen process of the member still has is left to that process:
// then tree makes another, with the incarnation at the end of its name. The latest of them has the member's last changes. A new tree
// for a task has its returned and unfinished work as branches, and the newest of that in its files, unless it was the tree of an
// earlier hold of the member.
func (l *Workspaces) tree(ctx context.Context, site *mergequeue.Site, w workspace.Work, head gitrepo.Hash) (*gitrepo.Tree, error) {
	repo := site.Repo
	p := gitrepo.Plan{At: head, Member: w.Member.AgentID, Epoch: w.Task.Epoch, From: gitrepo.Checkout{Prefix: w.Team.Branch.Prefix}}
	if from, links, mounted := l.links(ctx, w.Member.Role); len(links) > 0 {
		p.From, p.Links, p.Mounted = from, links, mounted
	}
	there, err := false, error(nil)
	if p.Name, there, err = mergequeue.LatestTree(repo, name(w)); err != nil {
		return nil, err
	}
	if w.Task.ID != "" && !there {
		if now, err := l.tasks.board.Get(ctx, w.Task.ID); err == nil { // with the work stored after the claim
			w.Task.Returned = now.Returned
		}
		if p.Continues, err = left(repo, w); err != nil {
			return nil, err
		}
	}
	if p.Branches, p.Work, err = l.returned(ctx, site, w.Task); err != nil {
		return nil, err
	}
	if w.Task.ID == "" && !l.been {
		l.been = true
		l.ran.Store(repo.HasRun(p.Name)) // under an earlier process
	}
	t, err := repo.Tree(ctx, p)
	switch {
	case errors.Is(err, team.Busy):
		p.Name = name(w) + "." + strconv.FormatUint(w.Member.Incarnation, 10)
		return repo.Tree(ctx, p)
	case w.Task.ID == "" && errors.Is(err, team.InvalidState): // its member has damaged it
		if err := l.keepWhole(ctx, repo, p.Name, team.Line(err), false); err != nil {
			return nil, err
		}
		return repo.Tree(ctx, p)
	}
	return t, err
}

// returned brings the returned and unfinished work on a task to this host, and returns it by the names of branches, and the newest
// of it. It leaves out work that is damaged or no longer stored: the task can be done without it.
func (l *Workspaces) returned(ctx context.Context, site *mergequeue.Site, t team.Task) (branches map[string]gitrepo.Hash, newest gitrepo.Unfinished, err error) {
	branches = map[string]gitrepo.Hash{}
	for _, y := range t.Returned {
		if y.Commit == "" {
			continue
		}
		work, err := site.Pinned(ctx, t.ID, y)
		switch code := team.CodeOf(err); {
		case err == nil:
			branches[y.Branch(t.ID)], newest = work.Files, work
		case code == "" || code == team.Unavailable:
			return nil, newest, fmt.Errorf("the work on %s that was returned: %w", t.ID, err)
		default:
			l.o.Logger.WarnContext(ctx, "work that was returned cannot be taken up", "task", t.ID, "epoch", y.Epoch, "commit", y.Commit, "err", err)
		}
	}
	return branches, newest, nil
}

// links returns the files of the user's folder for the trees of a role's members.
func (l *Workspaces) links(ctx context.Context, role string) (from gitrepo.Checkout, names []string, mounted bool) {
	return LinksOf(ctx, l.o.Source, l.o.Logger, l.o.Record(), role)
}

// name returns the name of the tree for w.
func name(w workspace.Work) string { return mergequeue.TreeName(w.Member.AgentID, w.Task) }

// leave ends one use of a place. It removes the tree once its task is over for the member, and all in it is stored.
func (l *Workspaces) leave(w workspace.Work, p *place) {
	held, _ := l.o.Slot.Task()
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.users--; p.users > 0 {
		return
	}
	delete(l.open, name(w))
	if w.Task.ID == "" || name(workspace.Work{Member: w.Member, Task: held}) == name(w) || !p.over.Load() {
		// Under the lock: its next user must not find it locked.
		if err := p.tree.Close(); err != nil {
			l.o.Logger.Warn("a tree was not given up", "tree", p.tree.Root, "err", err)
		}
		return
	}
	l.removes(func() {
		if err := p.tree.Remove(); err != nil {
			l.o.Logger.Warn("the tree of a task that is over was not removed", "tree", p.tree.Root, "err", err)
		}
	})
}

// removes runs f, which removes a tree, in a goroutine.
func (l *Workspaces) removes(f func()) {
	l.work.Add(1)
	go func() {
		defer l.work.Add(-1)
		f()
	}()
}

// Settled waits until the trees of finished tasks are removed, or ctx ends: the next sweep of this host removes the rest. Nothing
// may be open.
func (l *Workspaces) Settled(ctx context.Context) {
	for l.work.Load() > 0 && shutdown.Sleep(ctx, 10*time.Millisecond) {
	}
}

// Leave removes the trees of the member, which has left the team; at the end of the goal also those of members that were lost on
// this host, which no process has open. Nothing of the member may be open. It keeps changes without a task that [Workspaces.Uncommitted]
// could not set aside. Once ctx ends it removes no more and returns: the next sweep of this host removes the rest.
func (l *Workspaces) Leave(ctx context.Context, ended bool) error {
	l.Settled(ctx)
	l.mu.Lock()
	site := l.site
	l.mu.Unlock()
	if site == nil {
		return nil
	}
	there, err := site.Repo.Trees() // before the look at the record: not those of the next goal
	if err != nil {
		return err
	}
	if ended {
		ctx, cancel := context.WithTimeout(ctx, levelWithin)
		defer cancel()
		record, err := registry.Record(ctx, l.o.Team)
		ended = errors.Is(err, team.NotFound) || err == nil && record.Status != team.Active
	}
	needed := func(string) bool { return true }
	if listed, err := l.tasks.board.Load(ctx); err == nil {
		needed = needs(site.Repo, listed)
	}
	mine := func(tree string) bool { return owner(tree) == l.o.Member.AgentID }
	failed := l.keepUnseen(ctx, site.Repo, mine) // which is quick
	swept := make(chan error, 1)
	l.removes(func() {
		_, err := l.remove(ctx, site.Repo, func(tree string) bool {
			return ctx.Err() != nil || !slices.Contains(there, tree) || !mine(tree) && !ended || needed(tree)
		})
		swept <- err
	})
	select {
	case err = <-swept:
	case <-ctx.Done():
	}
	return errors.Join(failed, err, ctx.Err())
}

// owner returns the member of a tree, by its [name].
func owner(tree string) team.AgentID {
	parts := strings.Split(tree, ".")
	return team.AgentID(parts[min(1, len(parts)-1)])
}

// remove removes the trees for which keep returns false and that no process has open, except those to keep whole.
func (l *Workspaces) remove(ctx context.Context, repo *gitrepo.Repo, keep func(tree string) bool) (removed []string, err error) {
	failed := l.keepUnseen(ctx, repo, func(tree string) bool { return ctx.Err() == nil && !keep(tree) })
	removed, err = repo.Sweep(func(tree string) bool { return keep(tree) || l.unseen(repo, tree) })
	return removed, errors.Join(failed, err)
}

// unseen reports whether commands have run in a tree without a task since its last check: its member may have changed something
// there.
func (l *Workspaces) unseen(repo *gitrepo.Repo, tree string) bool {
	return strings.HasPrefix(tree, "at.") && (repo.HasRun(tree) || owner(tree) == l.o.Member.AgentID && l.ran.Load())
}

// keepUnseen keeps the unseen trees whole that no process has open.
func (l *Workspaces) keepUnseen(ctx context.Context, repo *gitrepo.Repo, of func(tree string) bool) error {
	trees, err := repo.Trees()
	for _, tree := range trees {
		if of(tree) && l.unseen(repo, tree) {
			err = errors.Join(err, l.keepWhole(ctx, repo, tree, "it was not looked at before its member was gone", true))
		}
	}
	return err
}

// tidyEvery is the time between two sweeps of trees of finished tasks.
const tidyEvery = 10 * time.Minute

// Run takes part in the merge queue while the team has an integration branch, and removes unneeded trees, until ctx ends; then it
// returns nil.
func (l *Workspaces) Run(ctx context.Context) error {
	defer func() {
		ctx, cancel := shutdown.Outlive(ctx, shutdown.Tools) // whose share this is beside
		defer cancel()
		l.Settled(ctx)
	}()
	for !l.o.Record().HasBranch() {
		if !shutdown.Sleep(ctx, roster.Interval) {
			return nil
		}
	}
	noticed := make(chan struct{})
	go func() {
		defer close(noticed)
		l.noteStuck(ctx)
	}()
	defer func() { <-noticed }()
	_, queue, err := l.at(ctx)
	for wait := time.Second; err != nil; wait = min(2*wait, time.Minute) { // meanwhile other processes merge
		l.o.Logger.WarnContext(ctx, "this process merges nothing; it tries again", "in", wait, "err", err)
		if !shutdown.Sleep(ctx, wait) {
			return nil
		}
		_, queue, err = l.at(ctx)
	}
	return shutdown.Together(ctx, queue.Run, l.tidy)
}

// tidy removes the trees of finished tasks from time to time, until ctx ends.
func (l *Workspaces) tidy(ctx context.Context) error {
	for {
		if err := l.sweep(ctx); err != nil && ctx.Err() == nil {
			l.o.Logger.WarnContext(ctx, "what is left of tasks that are over was not removed; it is tried again later", "err", err)
		}
		if !shutdown.Sleep(ctx, tidyEvery) {
			return nil
		}
	}
}

// sweep removes the trees of finished tasks, unless a process has them open, and returned and unfinished work that is no longer
// needed: its pins here, and, on the leader's host, its stored files. For the latter it lists all the team's stored files, so it
// skips that if the team has written nothing since.
func (l *Workspaces) sweep(ctx context.Context) error {
	seq, err := l.o.Team.Bucket.LastSeq(ctx)
	if err != nil {
		return err
	}
	stored := l.o.Member.AgentID == team.Leader && seq != l.swept
	// Before the tasks, whose records then name the work that they need.
	works, failed := l.site.Works(ctx, stored)
	listed, err := l.tasks.board.Load(ctx)
	if err != nil {
		return errors.Join(failed, err)
	}
	members, err := l.tasks.roster.List(ctx)
	if err != nil {
		return errors.Join(failed, err)
	}
	keep := map[string]bool{}
	for _, m := range members {
		if m.State != team.Stopped { // a member without a process has a successor, which needs the tree
			keep[name(workspace.Work{Member: m})] = true
		}
	}
	byID := map[team.TaskID]team.Task{}
	for _, t := range listed.Tasks {
		byID[t.ID] = t
	}
	for _, w := range works {
		if t, ok := byID[w.Task]; ok && !t.Needs(w.Epoch) {
			failed = errors.Join(failed, l.site.Forget(ctx, w))
		}
	}
	if stored && failed == nil {
		l.swept = seq
	}
	needed := needs(l.site.Repo, listed)
	removed, err := l.remove(ctx, l.site.Repo, func(tree string) bool {
		of, _ := mergequeue.SplitTree(tree)
		return keep[of] || needed(tree)
	})
	if len(removed) > 0 {
		l.o.Logger.DebugContext(ctx, "trees removed", "trees", removed)
	}
	return errors.Join(failed, err)
}
