package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentteam/pkg/team"
)

// hostileScript has two coders write what may not come into the line, or must not run: by the
// number of the task.
const hostileScript = `
agents:
  - match: {role: leader}
    rules:
      - name: finish
        since: '\[All Idle\]'
        steps:
          - calls: [{tool: finish_team, args: {summary: "done"}}]
      - name: lead
        since: '<mail from="user"'
        steps:
          - calls:
              - {tool: spawn_teammate, args: {role: coder}}
              - {tool: spawn_teammate, args: {role: coder}}
          - calls:
              - tool: create_tasks
                args:
                  tasks:
                    - {key: a, title: Hooks and settings, check: 'test -f own-1'}
                    - {key: b, title: A link out, check: 'test -f own-2'}
                    - {key: c, title: A submodule, check: 'test -f own-3'}
                    - {key: d, title: Attributes, check: 'test -f own-4'}
          - say: I wait.
      - name: rest
        say: I wait.
  - match: {role: coder}
    rules:
      - name: work
        since: '(?s)<task id="(?P<id>T-0*(?P<n>\d+))"'
        steps:
          - calls: [{tool: bash, args: {command: "echo 0 > own-{{.Match.n}}; bash work.sh {{.Match.n}}"}}]
          - calls: [{tool: update_task, args: {task_id: "{{.Match.id}}", status: completed, result_summary: "done"}}]
          - await: 'symbolic link out leads out|sub is a separate git repository'
            waiting: "Nothing to do."
            calls: [{tool: bash, args: {command: "rm -rf out sub; echo told > own-{{.Match.n}}"}}]
          - calls: [{tool: update_task, args: {task_id: "{{.Match.id}}", status: completed, result_summary: "without it"}}]
      - name: rest
        say: Nothing to do.
`

// hostileWork is what the coders do. MARKER is a program that makes a file outside of all that they
// may write.
const hostileWork = `
case $1 in
1)
	mkdir -p .git/hooks x
	for h in pre-commit post-checkout post-index-change reference-transaction post-merge fsmonitor-watchman; do printf '#!/bin/sh\nexec MARKER\n' > .git/hooks/$h; chmod +x .git/hooks/$h; done
	printf '[core]\n\tfsmonitor = MARKER\n\thooksPath = .git/hooks\n\tsshCommand = MARKER\n\tpager = MARKER\n[filter "spy"]\n\tclean = MARKER\n\tsmudge = MARKER\n\tprocess = MARKER\n[alias]\n\tadd = !MARKER\n\tcommit-tree = !MARKER\n[include]\n\tpath = x/config\n' >> .git/config
	printf '[gpg]\n\tprogram = MARKER\n[commit]\n\tgpgSign = true\n' > x/config
	printf '* filter=spy\n' > .git/info/attributes
	mkdir -p x/.git/hooks; cp .git/hooks/pre-commit x/.git/hooks/post-checkout; echo '[core]' > x/.git/config
	;;
2) ln -s ../../../../etc/passwd out ;;
3) mkdir sub; cd sub; git init -q; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m m ;;
4) printf '* filter=spy diff=spy merge=spy\n' > own.gitattributes; printf '* filter=spy diff=spy merge=spy ident\nnumbers.txt -filter\n' > .gitattributes; echo 4 >> numbers.txt ;;
esac
`

// poison are settings of the user's checkout that have git run a program.
const poison = `
mkdir -p .git/hooks
for h in post-checkout pre-commit reference-transaction post-index-change pre-auto-gc post-merge; do cp MARKER .git/hooks/$h; chmod +x .git/hooks/$h; done
for kv in core.fsmonitor core.sshCommand core.pager core.editor core.askPass gpg.program diff.external diff.spy.command diff.spy.textconv \
	filter.spy.clean filter.spy.smudge filter.spy.process merge.spy.driver credential.helper trailer.task.command; do git config $kv MARKER; done
git config filter.spy.required true; git config merge.default spy; git config core.hooksPath .git/hooks
for a in status fetch rev-parse cat-file bundle merge-tree; do git config alias.$a '!MARKER'; done
git config remote.origin.url 'ext::MARKER'; git config remote.origin.uploadpack MARKER; git config protocol.ext.allow always
`

// Nothing that a repository or a member names as a program runs on the host. What may not come into
// the line is refused by name, and its holder keeps the task.
func TestHostileRepository(t *testing.T) {
	t.Parallel()
	cache, outside := t.TempDir(), t.TempDir()
	marker, marked := filepath.Join(outside, "marker"), filepath.Join(outside, "marked")
	program := fmt.Sprintf("#!/bin/sh\necho \"$0 $*\" >> %s\ncat\n", marked)
	c := folder(t, rehearse(t, hostileScript), "AGENTTEAM_LEASE=5s", "XDG_CACHE_HOME="+cache)
	work := strings.ReplaceAll(hostileWork, "MARKER", marker)
	if err := errors.Join(os.WriteFile(marker, []byte(program), 0o755), os.WriteFile(filepath.Join(c.dir, "work.sh"), []byte(work), 0o644)); err != nil {
		t.Fatal(err)
	}
	repository(t, c.dir, `seq 20 > numbers.txt; printf '.agentteam\n' > .gitignore; printf '* filter=spy diff=spy merge=spy\n.git* -filter\n' > .gitattributes`)
	plant := exec.Command("bash", "-ec", strings.ReplaceAll(poison, "MARKER", marker))
	plant.Dir = c.dir
	if out, err := plant.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_ = os.Remove(marked) // of the planting
	c.upWith(3)
	r := c.begin("Do them").end(t)
	if text, err := os.ReadFile(marked); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("on the host there ran %s, %v", text, err)
	}
	repo := lineOf(t, cache)
	for n, v := range r.Tasks {
		own := git(t, repo, "show", fmt.Sprintf("agentteam/default:own-%d", n+1))
		if want := []string{"0", "told", "told", "0"}[n]; v.Status != team.Completed || v.Attempts != 0 || own != want {
			t.Errorf("%s is %s (%s); the line has %q, want %q", v.ID, v.Status, v.Reason, own, want)
		}
	}
	if names := git(t, repo, "ls-tree", "-r", "--name-only", "agentteam/default"); strings.Contains(names, "out") || strings.Contains(names, ".git/") || strings.Contains(names, "sub") {
		t.Errorf("the line has\n%s", names)
	}
	// The poison works where it is let.
	cmd := exec.Command("git", "diff", "HEAD")
	cmd.Dir = c.dir
	_ = cmd.Run()
	if _, err := os.Stat(marked); err != nil {
		t.Errorf("the poison does nothing: the test shows nothing: %v", err)
	}
}
