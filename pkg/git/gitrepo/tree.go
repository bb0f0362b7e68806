package gitrepo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"agentteam/pkg/team"
)

// Plan describes a tree to open or make.
type Plan struct {
	Name    string       // [a-z0-9][a-z0-9.-]*, unlike that of any other tree of the team; required
	At      Hash         // the commit whose files it gets, in most cases the head of the integration branch; required
	Member  team.AgentID // its owner; required
	From    Checkout     // whose subfolder is worked in, and whose Links there are; zero on another host
	Links   []string     // ignored files and folders that builds need, from the user's folder
	Mounted bool         // Links are not copied: places are made where the sandbox mounts them, read-only

	Branches map[string]Hash // commits of the repository that its git has by these names; those of a tree that is there stay

	Epoch     uint64     // under which its task is held
	Work      Unfinished // has its files on top of At, as changes that are not committed; zero: none
	Continues string     // a tree of the same member that becomes this one, with all that is in it; "": none
}

// Tree is a folder for one member to work in, with a separate git dir. Both are the member's: no git of the host uses that git
// dir once it is made. It is locked until Close or the end of this process.
type Tree struct {
	Root   string            // the folder
	Dir    string            // where the member works: Root, or the same subfolder of it as the user's
	Base   Hash              // the commit whose files it got, at last by Forward
	Begun  bool              // it was made, or became this one, when it was opened: its files may be other than those of the last use
	Mounts map[string]string // the read-only mounts of the sandbox in it: the place, and its source

	repo *Repo
	name string
	lock *os.File
}

// note is the host's record of a tree, where its member cannot write.
type note struct {
	Base      Hash              `json:"base"`
	Prefix    string            `json:"prefix,omitempty"`
	Mounts    map[string]string `json:"mounts,omitempty"`     // by the place from the tree's root
	UserFiles []string          `json:"user_files,omitempty"` // the user's files in it, from the tree's root
	Epoch     uint64            `json:"epoch,omitempty"`      // under which its task was held last
}

var treeName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,100}$`)

// Tree returns the tree of that name. An existing one is opened as its member has left it, so that a successor continues in it;
// At is ignored then. Else Tree makes it, whole or not at all.
//
// Errors: Busy if another process has it; InvalidArgument for invalid names and links.
func (r *Repo) Tree(ctx context.Context, p Plan) (_ *Tree, err error) {
	if !treeName.MatchString(p.Name) || strings.HasSuffix(p.Name, ".lock") || strings.HasSuffix(p.Name, ".json") || strings.HasSuffix(p.Name, ".ran") {
		return nil, team.Errorf(team.InvalidArgument, "%.60q is no name for a tree", p.Name)
	}
	if _, err := team.ParseAgentID(string(p.Member)); err != nil {
		return nil, err
	}
	if err := check(p.At); err != nil {
		return nil, err
	}
	t := &Tree{repo: r, name: p.Name, Root: filepath.Join(r.trees(), p.Name)}
	if err := t.take(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			t.lock.Close()
			err = fmt.Errorf("the tree %s: %w", p.Name, r.gone(err))
		}
	}()
	n, err := t.read()
	if errors.Is(err, fs.ErrNotExist) {
		t.Begun = true
		if n, err = t.become(p); errors.Is(err, fs.ErrNotExist) {
			n, err = t.make(ctx, p)
		}
	}
	if err == nil && n.Epoch < p.Epoch {
		n.Epoch = p.Epoch
		err = t.write(n)
	}
	if err == nil {
		err = t.usable(n)
	}
	if err != nil {
		return nil, err
	}
	t.Base, t.Mounts, t.Dir = n.Base, mountsIn(t.Root, n.Mounts), filepath.Join(t.Root, filepath.FromSlash(n.Prefix))
	return t, nil
}

func (t *Tree) noteFile() string { return t.Root + ".json" }
func (t *Tree) lockFile() string { return t.Root + ".lock" }
func (t *Tree) ranFile() string  { return t.Root + ".ran" }

// SetRan records, where the tree's member cannot write, whether commands have run there since its files were last checked. The
// record outlives this process.
func (t *Tree) SetRan(ran bool) error {
	if !ran {
		return removeAll(t.ranFile())
	}
	f, err := os.OpenFile(t.ranFile(), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return t.repo.gone(err)
	}
	return f.Close()
}

// HasRun returns the record of [Tree.SetRan]; true if that cannot be read.
func (r *Repo) HasRun(tree string) bool {
	_, err := os.Lstat(filepath.Join(r.trees(), tree) + ".ran")
	return !errors.Is(err, fs.ErrNotExist)
}

// take locks the tree. A process that removes the tree also removes the lock's file.
func (t *Tree) take() (err error) {
	if t.lock, err = lockFile(t.lockFile(), syscall.LOCK_EX); errors.Is(err, errLocked) {
		return team.Errorf(team.Busy, "the tree %s is another process's", t.name)
	}
	return t.repo.gone(err)
}

// read returns the tree's note; fs.ErrNotExist if there is no whole tree.
func (t *Tree) read() (n note, err error) {
	info, err := os.Lstat(t.Root)
	if err != nil {
		return note{}, err
	}
	if !info.IsDir() {
		return note{}, fmt.Errorf("%s is no folder", t.Root)
	}
	text, err := os.ReadFile(t.noteFile())
	if err != nil {
		return note{}, err
	}
	if err := json.Unmarshal(text, &n); err != nil { // such as an empty one, after the machine lost its power
		return note{}, team.Errorf(team.InvalidState, "the note of its commit cannot be read: %w", err).
			WithHint("release the task: its next holder has a new tree")
	}
	return n, nil
}

// usable makes sure that the folder in which the member works is a folder, and in the tree: its member may have put a link there,
// and the host works in it with more rights.
func (t *Tree) usable(n note) error {
	if err := mkdirInside(t.Root, n.Prefix); err != nil {
		return team.Errorf(team.InvalidState, "its folder %s cannot be used: %w", n.Prefix, err).
			WithHint("release the task: its next holder has a new tree")
	}
	return nil
}

// write stores the tree's note.
func (t *Tree) write(n note) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	fresh := t.noteFile() + ".new"
	if err := os.WriteFile(fresh, text, 0o600); err != nil {
		return err
	}
	return os.Rename(fresh, t.noteFile())
}

// make makes the tree in a temporary folder and then moves it to its place. It removes the leftovers of an earlier process.
func (t *Tree) make(ctx context.Context, p Plan) (n note, err error) {
	fresh := filepath.Join(t.repo.tmp(), "tree-"+p.Name)
	for _, left := range []string{fresh, t.Root, t.ranFile()} {
		if err := removeAll(left); err != nil {
			return note{}, err
		}
	}
	defer func() {
		if err != nil {
			_ = removeAll(fresh) // the next one who makes it tries again
		}
	}()
	if err := t.init(ctx, p, fresh); err != nil {
		return note{}, err
	}
	ignored, err := t.fill(ctx, p, fresh)
	if err != nil {
		return note{}, err
	}
	n = note{Base: p.At, Prefix: p.From.Prefix, Epoch: p.Epoch}
	if err := mkdirInside(fresh, n.Prefix); err != nil {
		return note{}, err
	}
	if n.UserFiles, n.Mounts, err = p.From.copyUserFiles(ctx, p.Links, fresh, p.Mounted); err != nil {
		return note{}, err
	}
	if err := exclude(fresh, append(ignored, n.UserFiles...)); err != nil {
		return note{}, err
	}
	if err := t.write(n); err != nil {
		return note{}, err
	}
	return n, os.Rename(fresh, t.Root)
}

// fill writes the files of a new tree. It returns the files of the work that git ignored where they were made.
func (t *Tree) fill(ctx context.Context, p Plan, fresh string) (ignored []string, err error) {
	files := p.At
	if p.Work.Whole != "" {
		all, err := changes(ctx, t.repo.git, p.Work.Files, p.Work.Whole)
		if err != nil {
			return nil, err
		}
		for _, c := range all {
			ignored = append(ignored, c.path)
		}
		m, err := t.repo.Merge(ctx, p.At, p.Work.Whole)
		if err != nil {
			return nil, err
		}
		files = m.Tree
	}
	// read-tree runs no checkout hook and no filter: the config of the git dir, made a moment ago, has none.
	steps := [][]string{{"read-tree", "-m", "-u", string(files)}}
	if files != p.At {
		steps = append(steps, []string{"read-tree", "-i", "-m", string(files), string(p.At)}) // the files stay: they are changes
	}
	for _, args := range steps {
		g := git{args: args, dir: fresh, within: slow}
		g.env = []string{"GIT_DIR=" + filepath.Join(fresh, ".git"), "GIT_WORK_TREE=" + fresh}
		if _, err := g.run(ctx); err != nil {
			return nil, err
		}
	}
	return ignored, nil
}

// become turns the tree that this one continues into this one. fs.ErrNotExist if there is none, or a process has it.
func (t *Tree) become(p Plan) (note, error) {
	if p.Continues == "" {
		return note{}, fs.ErrNotExist
	}
	old := &Tree{repo: t.repo, name: p.Continues, Root: filepath.Join(t.repo.trees(), p.Continues)}
	if err := old.take(); errors.Is(err, team.Busy) {
		return note{}, fs.ErrNotExist
	} else if err != nil {
		return note{}, err
	}
	n, err := old.read()
	if err == nil {
		err = errors.Join(removeAll(t.Root), t.write(n)) // the note first: without it the folder is no tree
	}
	if err == nil {
		err = os.Rename(old.Root, t.Root)
	}
	if err != nil {
		return note{}, errors.Join(err, old.Close())
	}
	return n, old.Remove() // its note and its lock
}

// Keep records that the tree's task is held under epoch now, so that no older work replaces its files.
func (t *Tree) Keep(epoch uint64) error {
	return t.amend(func(n *note) { n.Epoch = max(n.Epoch, epoch) })
}

// amend changes the tree's note.
func (t *Tree) amend(f func(*note)) error {
	n, err := t.read()
	if err != nil {
		return err
	}
	f(&n)
	return t.write(n)
}

// EpochOf returns the last epoch under which the task of a tree was held; ok is false if there is no such tree, or not a whole
// one.
func (r *Repo) EpochOf(tree string) (epoch uint64, ok bool) {
	n, err := (&Tree{repo: r, name: tree, Root: filepath.Join(r.trees(), tree)}).read()
	return n.Epoch, err == nil
}

// init makes the git dir of a tree, which reads the objects of the integration branch from the repository.
func (t *Tree) init(ctx context.Context, p Plan, fresh string) error {
	branch := "work/" + p.Name
	g := git{args: []string{"init", "--quiet", "--template=", "--initial-branch=" + branch, "--object-format=sha1", fresh}}
	if _, err := g.run(ctx); err != nil {
		return err
	}
	dir := filepath.Join(fresh, ".git")
	exclude := ""
	if text, err := os.ReadFile(filepath.Join(p.From.common, "info", "exclude")); err == nil && p.From.common != "" {
		exclude = string(text) + "\n"
	}
	shallow := ""
	for _, h := range t.repo.shallow() {
		shallow += string(h) + "\n"
	}
	files := map[string]string{
		filepath.Join("objects", "info", "alternates"): t.repo.objects() + "\n",
		filepath.Join("info", "exclude"):               exclude,
		"shallow":                                      shallow,
		headRef(branch):                                string(p.At) + "\n",
	}
	for name, at := range p.Branches {
		files[headRef(name)] = string(at) + "\n"
	}
	for name, text := range files {
		if text == "" {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(filepath.Join(dir, "config"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	// The member's own commands may see other numbers of users and files than we.
	_, err = fmt.Fprintf(f, "\tcheckStat = minimal\n[user]\n\tname = %s\n\temail = %[1]s@%s.agentteam.invalid\n[gc]\n\tauto = 0\n", p.Member, t.repo.team)
	return errors.Join(err, f.Close())
}

// headRef returns the file of a branch in a git dir.
func headRef(branch string) string { return filepath.Join("refs", "heads", filepath.FromSlash(branch)) }

// exclude has git ignore files in a new tree.
func exclude(fresh string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	if err := os.MkdirAll(filepath.Join(fresh, ".git", "info"), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(fresh, ".git", "info", "exclude"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	for _, name := range names {
		_, e := f.WriteString("/" + escapePattern(filepath.ToSlash(name)) + "\n")
		err = errors.Join(err, e)
	}
	return errors.Join(err, f.Close())
}

// escapePattern returns the pattern of .gitignore that matches only this name.
func escapePattern(name string) string {
	return regexp.MustCompile(`[\\*?\[\]! #]`).ReplaceAllString(name, `\$0`)
}

// mkdirInside makes a folder below top, through no link.
func mkdirInside(top, name string) error {
	root, err := os.OpenRoot(top)
	if err != nil {
		return err
	}
	defer root.Close()
	return root.MkdirAll(cmp.Or(filepath.FromSlash(name), "."), 0o755)
}

// Objects returns the folder of the integration branch's objects, which the member's sandbox must mount read-only.
func (t *Tree) Objects() string { return t.repo.objects() }

// Close unlocks the tree; its files stay as they are.
func (t *Tree) Close() error { return t.lock.Close() }

// Remove removes the tree with all its files, and closes it. Nothing may run in it.
func (t *Tree) Remove() error {
	// The note first: a folder without it does not count as a tree.
	err := errors.Join(removeAll(t.noteFile()), removeAll(t.Root), removeAll(t.ranFile()), removeAll(t.lockFile()))
	return errors.Join(err, t.Close())
}

// Trees returns the names of the existing trees.
func (r *Repo) Trees() (names []string, err error) {
	entries, err := os.ReadDir(r.trees())
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, r.gone(err)
}

// Sweep removes the trees that no process has open and for which keep returns false, and the leftovers of killed processes. It
// returns the names of the removed trees.
func (r *Repo) Sweep(keep func(name string) bool) (removed []string, err error) {
	names, err := r.Trees()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if keep(name) {
			continue
		}
		t := &Tree{repo: r, name: name, Root: filepath.Join(r.trees(), name)}
		if err := t.take(); errors.Is(err, team.Busy) {
			continue
		} else if err != nil {
			return removed, err
		}
		if err := t.Remove(); err != nil {
			return removed, err
		}
		removed = append(removed, name)
	}
	return removed, errors.Join(r.sweepTmp(), r.sweepLocks())
}

// staleLock is the age at which the lock of a ref counts as abandoned: git holds it for one write.
const staleLock = time.Minute

// sweepLocks removes the locks of refs that a killed git has left: no process could write these refs again.
func (r *Repo) sweepLocks() error {
	now, err := r.touched()
	if err != nil {
		return err
	}
	return filepath.WalkDir(r.bare, func(name string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed meanwhile
			return nil
		case err != nil:
			return err
		case e.IsDir() && e.Name() == "objects":
			return fs.SkipDir
		case e.IsDir() || !strings.HasSuffix(e.Name(), ".lock"):
			return nil
		}
		info, err := e.Info()
		if err != nil || now.Sub(info.ModTime()) < staleLock {
			return nil
		}
		return removeAll(name)
	})
}

// Keep moves a tree, which no process has open, to a folder that only the team's deletion removes; it calls first with that
// folder before the move. Errors: Busy; NotFound if there is no such tree.
func (r *Repo) Keep(name string, first func(folder string)) error {
	t := &Tree{repo: r, name: name, Root: filepath.Join(r.trees(), name)}
	if err := t.take(); err != nil {
		return err
	}
	_, err := os.Lstat(t.Root)
	if errors.Is(err, fs.ErrNotExist) {
		err = team.Errorf(team.NotFound, "there is no tree %s", name)
	}
	if err == nil {
		err = os.MkdirAll(r.kept(), 0o700)
	}
	if err == nil {
		folder := filepath.Join(r.kept(), name+"."+strconv.FormatInt(time.Now().UnixNano(), 36))
		first(folder)
		err = os.Rename(t.Root, folder)
	}
	if err != nil {
		return errors.Join(err, t.Close())
	}
	return t.Remove() // its note and its lock
}

// sweepTmp removes files that are older than the longest command.
func (r *Repo) sweepTmp() error {
	entries, err := os.ReadDir(r.tmp())
	if err != nil {
		return err
	}
	now, err := r.touched()
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || now.Sub(info.ModTime()) < 2*slow {
			continue
		}
		if err := removeAll(filepath.Join(r.tmp(), e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// removeAll removes a file or folder, also folders that a member has made unwritable. It follows no link.
func removeAll(name string) error {
	err := os.RemoveAll(name)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	root, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		return err
	}
	defer root.Close()
	if err := openUp(root, filepath.Base(name)); err != nil {
		return err
	}
	return os.RemoveAll(name)
}

// openUp gives this process the rights on folders, from the top down.
func openUp(root *os.Root, name string) error {
	info, err := root.Lstat(name)
	if err != nil || !info.IsDir() {
		return err
	}
	if err := root.Chmod(name, 0o700); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	entries, err := f.ReadDir(-1)
	f.Close()
	for _, e := range entries {
		if e.IsDir() {
			err = errors.Join(err, openUp(root, filepath.Join(name, e.Name())))
		}
	}
	return err
}
