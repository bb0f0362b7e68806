package gitrepo

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"agentteam/pkg/team"
)

// Import takes the one commit of a bundle of [Tree.Commit] on base, a commit of the integration branch, into the repository,
// and returns it. It first checks the whole bundle in quarantine; nothing of a refused bundle stays. No ref moves.
//
// Errors: InvalidArgument, naming the file, for content that no task may add: paths and links that lead out or into .git,
// submodules, damaged or incomplete data; BudgetExceeded beyond the [Limits]; Conflict if base is not in the branch.
func (r *Repo) Import(ctx context.Context, bundle []byte, base Hash) (Hash, error) {
	all, err := r.takeIn(ctx, bundle, base, work)
	if err != nil {
		return "", err
	}
	return all[0], nil
}

// kind describes the permitted content of a bundle on a commit of the integration branch.
type kind struct {
	commits int  // at most, one on the other
	bundle  int  // how many times as large as [Limits].Bundle it may be
	links   bool // symbolic links may lead anywhere, and paths may differ by case only: no other tree gets them
}

// The kinds: work to merge, and unfinished work of a member.
var (
	work       = kind{commits: 1, bundle: 1}
	unfinished = kind{commits: 2, bundle: 2, links: true} // incompressible data grows by the packing
)

// takeIn imports the commits of a bundle, and returns them, the oldest first.
func (r *Repo) takeIn(ctx context.Context, bundle []byte, base Hash, k kind) ([]Hash, error) {
	head, err := r.Head(ctx)
	if err != nil {
		return nil, err
	}
	if ok, err := r.Contains(ctx, head, base); err != nil {
		return nil, err
	} else if !ok {
		return nil, team.Errorf(team.Conflict, "the commit's base %s is not in the line", base.Short())
	}
	limits := r.limits
	limits.Bundle *= int64(k.bundle)
	q, err := r.quarantine(ctx, bytes.NewReader(bundle), limits)
	if err != nil {
		return nil, err
	}
	defer q.end()
	if len(q.bases) != 1 || q.bases[0] != base || len(q.shallow) > 0 {
		return nil, refused("its bundle is not made on %s", base.Short())
	}
	if err := q.index(ctx, strict); err != nil {
		return nil, err
	}
	all, err := q.chain(ctx, base, k.commits)
	if err != nil {
		return nil, err
	}
	if err := q.checkFiles(ctx, base, k); err != nil {
		return nil, err
	}
	if err := q.release(); err != nil {
		return nil, err
	}
	r.tidy(ctx)
	return all, nil
}

// strict has index-pack check all objects, and that none is missing. Its complaints about .gitmodules and .gitattributes
// would concern the user's own: checkChange makes sure that a task does not change .gitmodules, and attributes have no
// effect.
const strict = "--strict=gitmodulesName=ignore,gitmodulesUrl=ignore,gitmodulesPath=ignore,gitmodulesUpdate=ignore,gitmodulesParse=ignore," +
	"gitmodulesLarge=ignore,gitattributesLineLength=ignore,gitattributesLarge=ignore"

// quarantined is a bundle in a separate folder. git sees its objects there, and those of the repository; the repository does
// not see them.
type quarantined struct {
	header
	repo   *Repo
	limits Limits
	dir    string
}

func (q *quarantined) end()            { os.RemoveAll(q.dir) }
func (q *quarantined) objects() string { return filepath.Join(q.dir, "objects") }
func (q *quarantined) bundle() string  { return filepath.Join(q.dir, "bundle") }

func (q *quarantined) git(args ...string) git {
	g := q.repo.git(args...)
	g.env = []string{"GIT_OBJECT_DIRECTORY=" + q.objects(), "GIT_ALTERNATE_OBJECT_DIRECTORIES=" + q.repo.objects()}
	return g
}

// quarantine stores a bundle in a separate folder, reads its header and checks its unpacked size.
func (r *Repo) quarantine(ctx context.Context, in io.Reader, l Limits) (_ *quarantined, err error) {
	dir, err := os.MkdirTemp(r.tmp(), "bundle-")
	if err != nil {
		return nil, r.gone(err)
	}
	q := &quarantined{repo: r, limits: l, dir: dir}
	defer func() {
		if err != nil {
			q.end()
		}
	}()
	if err := os.MkdirAll(filepath.Join(q.objects(), "pack"), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(q.bundle(), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close() // it is read from then on
	if n, err := io.Copy(f, io.LimitReader(in, l.Bundle+1)); err != nil {
		return nil, err
	} else if n > l.Bundle {
		return nil, tooBig("its bundle has more than %d bytes", l.Bundle)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	all := bufio.NewReaderSize(f, 64<<10)
	if q.header, err = readHeader(all); err != nil {
		return nil, err
	}
	return q, scanPack(all, l)
}

// index has git check the pack and write its index.
func (q *quarantined) index(ctx context.Context, options ...string) error {
	f, err := os.Open(q.bundle())
	if err != nil {
		return err
	}
	defer f.Close()
	pack := bufio.NewReader(f)
	if _, err := readHeader(pack); err != nil {
		return err
	}
	g := q.git(append([]string{"index-pack", "--stdin", "--fix-thin", "--threads=1"}, options...)...)
	g.stdin, g.within = pack, slow
	_, err = g.run(ctx)
	if itsFault(err) {
		return damaged(err)
	}
	return q.repo.gone(err)
}

// itsFault reports whether git has failed because of a bundle's content. A full disk of this host, or a git that was killed
// from outside (the kernel does that when out of memory), is not a fault of a bundle.
func itsFault(err error) bool { return exitCode(err) > 0 && !messageOf(err, hostFaults...) }

// Error texts about this host, of git and of package os: noRoom for lack of disk or memory, which is temporary.
var (
	noRoom     = []string{"no space left", "quota exceeded", "cannot allocate", "out of memory"}
	hostFaults = append([]string{"read-only file system", "permission denied", "input/output error", "too many open files", "resource temporarily unavailable",
		"signal: killed", "signal: terminated", "signal: interrupt", "signal: hangup", "signal: bus error"}, noRoom...)
)

// chain checks that the tip is the last of at most that many commits on base, each on the one before. It returns them, the
// oldest first.
func (q *quarantined) chain(ctx context.Context, base Hash, most int) (all []Hash, err error) {
	for at := q.tip; at != base; {
		if len(all) == most {
			return nil, refused("it is not one commit on %s, or has more than %d", base.Short(), most)
		}
		all = append(all, at)
		if at, err = q.parent(ctx, at); err != nil {
			return nil, err
		}
	}
	if len(all) == 0 {
		return nil, refused("its bundle has no commit on %s", base.Short())
	}
	slices.Reverse(all)
	return all, nil
}

// parent returns the one parent of a commit.
func (q *quarantined) parent(ctx context.Context, of Hash) (Hash, error) {
	g := q.git("cat-file", "--batch") // prints the type: a tag would pass for its commit elsewhere
	g.stdin = strings.NewReader(string(of) + "\n")
	out, err := g.run(ctx)
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(string(out), string(of)+" commit ") {
		return "", refused("its bundle has no commit %s", of.Short())
	}
	head, _, _ := strings.Cut(string(out), "\n\n")
	var parents []string
	for l := range strings.Lines(head) {
		if p, ok := strings.CutPrefix(strings.TrimSpace(l), "parent "); ok {
			parents = append(parents, p)
		}
	}
	if len(parents) != 1 {
		return "", refused("commit %s has %d parents, and must have one", of.Short(), len(parents))
	}
	return ParseHash(parents[0])
}

// mostNames bounds the names of all files of a commit, in bytes.
const mostNames = 128 << 20

// checkFiles checks the files that differ between base and the tip.
func (q *quarantined) checkFiles(ctx context.Context, base Hash, k kind) error {
	// First a command that prints while it reads: a few small nested trees may have more files than fit into any memory,
	// and all of them differ.
	list := q.git("ls-tree", "-r", "-z", "--name-only", "--full-tree", string(q.tip))
	list.most, list.within = mostNames, slow
	names, err := list.run(ctx)
	if errors.Is(err, errTooMuch) {
		return tooBig("it has more files than can be listed")
	} else if itsFault(err) {
		return damaged(err)
	} else if err != nil {
		return err
	}
	all, err := changes(ctx, q.git, base, q.tip)
	if itsFault(err) {
		return damaged(err)
	} else if err != nil {
		return err
	}
	if len(all) > q.limits.Files {
		return tooBig("it changes %d files, at most %d", len(all), q.limits.Files)
	}
	var added []string
	var now, links []change
	for _, c := range all {
		if err := checkChange(c); err != nil {
			return err
		}
		if c.status == 'A' {
			added = append(added, c.path)
		}
		if c.status != 'D' {
			now = append(now, c)
		}
		if c.after == modeLink && c.status != 'D' {
			links = append(links, c)
		}
	}
	if err := q.checkSizes(ctx, now); err != nil {
		return err
	}
	if k.links {
		return nil
	}
	if err := q.checkLinks(ctx, links); err != nil || len(added) == 0 {
		return err
	}
	return checkCase(fields(names), added)
}

// checkSizes adds up the sizes of the changed files. One small object may be many files.
func (q *quarantined) checkSizes(ctx context.Context, all []change) error {
	var ask strings.Builder
	for _, c := range all {
		ask.WriteString(string(c.is) + "\n")
	}
	g := q.git("cat-file", "--batch-check=%(objecttype) %(objectsize)")
	g.stdin = strings.NewReader(ask.String())
	out, err := g.run(ctx)
	if err != nil {
		return err
	}
	var sum int64
	for i, l := range strings.Split(strings.TrimSuffix(string(out), "\n"), "\n") {
		if len(all) == 0 {
			break
		}
		kind, size, _ := strings.Cut(l, " ")
		n, err := strconv.ParseInt(size, 10, 64)
		if kind != "blob" || err != nil {
			return damaged(fmt.Errorf("%s is not in it", all[i].path))
		}
		if all[i].after == modeLink && n > mostPath {
			return refused("the symbolic link %s is too long", all[i].path)
		}
		if sum += n; sum > q.limits.Unpacked {
			return tooBig("its files have more than %d bytes", q.limits.Unpacked)
		}
	}
	return nil
}

// checkLinks reads the symbolic links, which are short, and checks them.
func (q *quarantined) checkLinks(ctx context.Context, links []change) error {
	for _, c := range links {
		target, err := q.git("cat-file", "blob", string(c.is)).run(ctx)
		if err != nil {
			return err
		}
		if err := checkLink(c.path, string(target)); err != nil {
			return err
		}
	}
	return nil
}

// release moves the pack into the repository, its index last: git does not see a pack without an index.
func (q *quarantined) release() error {
	to := filepath.Join(q.repo.objects(), "pack")
	for _, kind := range []string{"rev", "pack", "idx"} {
		files, err := filepath.Glob(filepath.Join(q.objects(), "pack", "*."+kind))
		if err != nil {
			return err
		}
		for _, f := range files {
			if err := os.Rename(f, filepath.Join(to, filepath.Base(f))); err != nil {
				return q.repo.gone(err)
			}
		}
	}
	return nil
}

// changes returns the files that differ between two commits or trees, renames as two.
func changes(ctx context.Context, in func(...string) git, from, to Hash, paths ...string) ([]change, error) {
	g := in(append([]string{"diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", "--end-of-options", string(from), string(to), "--"}, paths...)...)
	g.env = append(g.env, "GIT_LITERAL_PATHSPECS=1")
	out, err := g.run(ctx)
	if err != nil {
		return nil, err
	}
	all := fields(out) // ":modes hashes status", path
	var found []change
	for i := 0; i+1 < len(all); i += 2 {
		f := strings.Fields(strings.TrimPrefix(all[i], ":"))
		if len(f) != 5 {
			return nil, fmt.Errorf("git diff-tree prints %.80q", all[i])
		}
		found = append(found, change{before: f[0], after: f[1], was: Hash(f[2]), is: Hash(f[3]), status: f[4][0], path: all[i+1]})
	}
	return found, nil
}
