package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"agentteam/pkg/execenv"
	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/git/worktree"
	"agentteam/pkg/store/board"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/workspace"
)

// The goals of worktrees: merged tasks an hour with checks of 0.1 s, and how much longer than git's own a
// tree may take.
const (
	mergedAnHour = 1000
	treeLonger   = 1.5
)

// lineBench measures worktrees: what they add to a task, how many tasks a line takes in, and how soon
// a tree of many files is ready.
func lineBench(ctx context.Context, r *rig) (all []figure, err error) {
	tasks, members, perMember, files, trees := 30, 64, 4, 50_000, 3
	if os.Getenv("BENCH") == "quick" {
		tasks, perMember, files, trees = 8, 1, 5_000, 2
	}
	few, err := repository(r.dir, "few", 1000)
	if err != nil {
		return nil, err
	}
	progress("hands: %d tasks with and without a worktree", tasks)
	if all, err = completions(ctx, r, few, tasks); err != nil {
		return nil, err
	}
	progress("hands: %d members merge %d tasks each", members, perMember)
	f, err := mergeRate(ctx, r, few, members, perMember)
	if err != nil {
		return nil, err
	}
	all = append(all, f)
	progress("hands: %d trees of %d files", trees, files)
	if f, err = readyTrees(ctx, r.dir, files, trees); err != nil {
		return nil, err
	}
	return append(all, f), nil
}

// repository makes a git repository of n files, and returns its folder.
func repository(in, name string, n int) (dir string, err error) {
	dir = filepath.Join(in, name)
	for i := range n {
		folder := filepath.Join(dir, fmt.Sprintf("d%d", i/500), fmt.Sprintf("s%d", i%25))
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("f%d.txt", i)), fmt.Appendf(nil, "file %d\n%0200d\n", i, i), 0o600); err != nil {
			return "", err
		}
	}
	return dir, git(dir, "init -q && git add -A && git -c user.name=bench -c user.email=bench@example.org commit -qm first")
}

// git runs a command line that begins with git in a folder.
func git(dir, line string) error {
	cmd := exec.Command("bash", "-c", "git "+line)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w: %s", line, err, out)
	}
	return nil
}

// mate is a member without a model.
type mate struct {
	hand *board.ClaimSlot
	line *worktree.Workspaces
	at   *workspace.Current
}

// mates makes members of a team whose workspace is dir, on the line or in the folder itself.
func (r *rig) mates(ctx context.Context, id team.TeamID, dir string, n int, wish team.Isolation) (b *board.Board, all []*mate, err error) {
	conn, err := r.connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	storage, err := r.makeTeam(ctx, conn, id)
	if err != nil {
		return nil, nil, err
	}
	lines := filepath.Join(r.dir, "lines")
	record := team.Team{ID: id, LeaseSeconds: 30, Goal: "work", GoalNumber: 1, Workspace: dir, Policy: team.Policy{Isolation: wish}}
	decided, err := worktree.Decide(ctx, record, dir, func(ctx context.Context) (*mergequeue.Site, error) {
		return mergequeue.At(ctx, lines, storage, record)
	})
	if err != nil {
		return nil, nil, err
	}
	record.Branch = &decided
	b = board.New(storage.Bucket, board.Options{Withdraw: mergequeue.New(storage).Withdraw})
	source := execenv.New(execenv.Options{Dir: dir, Cache: filepath.Join(r.dir, "cache")})
	for i := range n {
		member := team.Member{AgentID: team.AgentID(fmt.Sprintf("coder-%d", i+1)), Role: "coder", Incarnation: 1}
		m := &mate{hand: board.NewClaimSlot(ctx, b, member.Holder())}
		m.line = worktree.New(worktree.Options{Process: "bench", Team: storage, Record: func() team.Team { return record }, Member: member, Slot: m.hand, Source: source, Level: source.Level, Dir: lines})
		m.at = workspace.Follow(m.line, func() workspace.Work {
			w := workspace.Work{Team: record, Member: member}
			if w.Task, _ = m.hand.Task(); w.Task.ID == "" {
				w.Head = string(m.line.Head())
			}
			return w
		}, workspace.Options{})
		all = append(all, m)
	}
	return b, all, nil
}

// task takes a task from its claim to its end, in which one file is added, and returns how long it
// took to get a folder, and to complete it.
func (m *mate) task(ctx context.Context, b *board.Board, check string, online bool) (ready, completed time.Duration, err error) {
	made, err := b.Create(ctx, team.UserAgent, team.NewTask{Title: "Add a file", Check: check})
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	t, err := m.hand.Claim(ctx, made[0].ID)
	if err != nil {
		return 0, 0, err
	}
	ws, done, err := m.at.Use(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer done()
	ready = time.Since(began)
	if err := os.WriteFile(filepath.Join(ws.Dir(), string(t.ID)), []byte(t.ID+"\n"), 0o600); err != nil {
		return 0, 0, err
	}
	began = time.Now()
	if check != "" {
		if out, ok, err := ws.Check(ctx, check); err != nil || !ok {
			return 0, 0, fmt.Errorf("the check: %w: %s", err, out)
		}
	}
	if online {
		t, err = m.line.Complete(ctx, t, team.Done{Summary: "added"})
	} else {
		t, err = m.hand.Complete(ctx, t.ID, team.Done{Summary: "added"})
	}
	if err == nil && (t.Status != team.Completed || online && t.Commit == "") {
		err = fmt.Errorf("%s is %s, commit %q", t.ID, t.Status, t.Commit)
	}
	return ready, time.Since(began), err
}

// merging has members take part in the queue until the returned function is called.
func merging(ctx context.Context, all []*mate) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	var g errgroup.Group
	for _, m := range all {
		g.Go(func() error { return m.line.Run(ctx) })
	}
	return func() error {
		cancel()
		err := g.Wait()
		for _, m := range all {
			m.at.Close()
			m.line.Settled(context.Background())
		}
		return err
	}
}

// completions measures a task with a worktree beside one without, in turns.
func completions(ctx context.Context, r *rig, dir string, rounds int) ([]figure, error) {
	took := map[string][]float64{}
	type side struct {
		name string
		b    *board.Board
		m    *mate
	}
	var sides []side
	for name, wish := range map[string]team.Isolation{"worktree": team.Worktrees, "shared": team.Shared} {
		b, all, err := r.mates(ctx, team.TeamID(name), dir, 1, wish)
		if err != nil {
			return nil, err
		}
		if wish == team.Worktrees {
			defer merging(ctx, all)()
		} else {
			defer all[0].at.Close()
		}
		sides = append(sides, side{name, b, all[0]})
	}
	for range rounds {
		for _, s := range sides {
			ready, completed, err := s.m.task(ctx, s.b, "", s.name == "worktree")
			if err != nil {
				return nil, fmt.Errorf("a task in %s: %w", s.name, err)
			}
			took["claim_"+s.name] = append(took["claim_"+s.name], milliseconds(ready))
			took["complete_"+s.name] = append(took["complete_"+s.name], milliseconds(completed))
		}
	}
	return []figure{
		measured("claim_worktree_p50", median(took["claim_worktree"]), "ms").beside(median(took["claim_shared"])),
		measured("complete_worktree_p50", median(took["complete_worktree"]), "ms").beside(median(took["complete_shared"])),
	}, nil
}

// mergeRate measures how many tasks an hour get into the line, whose members all work at once, with
// checks of 0.1 s.
func mergeRate(ctx context.Context, r *rig, dir string, members, each int) (figure, error) {
	b, all, err := r.mates(ctx, "many", dir, members, team.Worktrees)
	if err != nil {
		return figure{}, err
	}
	stop := merging(ctx, all)
	began := time.Now()
	g, gctx := errgroup.WithContext(ctx)
	for _, m := range all {
		g.Go(func() error {
			for range each {
				if _, _, err := m.task(gctx, b, "sleep 0.1", true); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err = g.Wait()
	hours := time.Since(began).Hours()
	if stopped := stop(); err == nil {
		err = stopped
	}
	return measured(fmt.Sprintf("merged_an_hour_%d_members", members), float64(members*each)/hours, "tasks/h").atLeast(mergedAnHour), err
}

// readyTrees measures how soon a tree is ready beside git worktree add, in turns.
func readyTrees(ctx context.Context, in string, files, rounds int) (figure, error) {
	dir, err := repository(in, "large", files)
	if err != nil {
		return figure{}, err
	}
	repo, err := gitrepo.Open(ctx, filepath.Join(in, "large.line"), "large", gitrepo.Limits{})
	if err != nil {
		return figure{}, err
	}
	c, err := gitrepo.Inspect(ctx, dir)
	if err == nil {
		err = repo.Fetch(ctx, c)
	}
	if err != nil {
		return figure{}, err
	}
	var ours, gits []float64
	for i := range rounds {
		var t *gitrepo.Tree
		aside := filepath.Join(in, fmt.Sprintf("aside-%d", i))
		turns := []func() error{
			func() (err error) {
				began := time.Now()
				t, err = repo.Tree(ctx, gitrepo.Plan{Name: fmt.Sprintf("t-%d", i), At: c.Head, Member: "coder-1", From: c})
				ours = append(ours, milliseconds(time.Since(began)))
				return err
			},
			func() error {
				began := time.Now()
				err := git(dir, "worktree add -q --detach "+aside)
				gits = append(gits, milliseconds(time.Since(began)))
				return err
			},
		}
		if i%2 == 1 { // who comes second finds the inodes that the last round has freed still warm
			slices.Reverse(turns)
		}
		for _, turn := range turns {
			if err := turn(); err != nil {
				return figure{}, err
			}
		}
		if err := errors.Join(t.Remove(), git(dir, "worktree remove -f "+aside)); err != nil {
			return figure{}, err
		}
	}
	return measured(fmt.Sprintf("tree_%d_files_p50", files), median(ours), "ms").beside(median(gits)).atMost(treeLonger), nil
}
