package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"agentteam/pkg/team"
	"agentteam/pkg/tool/workspace"
)

// A key that somebody has linked into the workspace is not read, and nothing is written under
// one name of several. What package stores link is read.
func TestHardLinks(t *testing.T) {
	p := open(t, workspace.Options{})
	outside := filepath.Join(filepath.Dir(p.dir), "outside")
	if err := errors.Join(os.WriteFile(outside, []byte("secret"), 0o600), os.Link(outside, p.path("key")),
		os.WriteFile(outside+"2", []byte("secret"), 0o644), os.Link(outside+"2", p.path("module.js"))); err != nil {
		t.Fatal(err)
	}
	p.fails(team.PermissionDenied, "read_file", args{"path": "key"})
	p.fails(team.PermissionDenied, "grep", args{"path": "key", "pattern": "secret"})
	if got := p.ok("grep", args{"pattern": "secret"}); got != "module.js:1:secret" {
		t.Errorf("grep: %s", got)
	}
	p.ok("read_file", args{"path": "module.js"})
	for _, name := range []string{"key", "module.js"} {
		p.fails(team.PermissionDenied, "write_file", args{"path": name, "content": "mine"})
		if got := p.fails(team.PermissionDenied, "edit_file", args{"path": name, "old_string": "secret", "new_string": "mine"}); !strings.Contains(got, "hard link") {
			t.Errorf("edit of %s: %s", name, got)
		}
	}
	// As the hint says.
	p.ok("bash", args{"command": "cp -p module.js module.js.new && mv module.js.new module.js"})
	p.ok("read_file", args{"path": "module.js"})
	p.ok("edit_file", args{"path": "module.js", "old_string": "secret", "new_string": "mine"})
	for _, name := range []string{outside, outside + "2"} {
		if data, err := os.ReadFile(name); err != nil || string(data) != "secret" {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
}

// Commands change links while files are opened: a name that was harmless when it was looked
// at leads elsewhere when it is used. Neither what belongs to the cluster nor what a member
// may not write is reached so.
func TestLinksThatChangeMeanwhile(t *testing.T) {
	p := open(t, workspace.Options{Writable: func(name string) error {
		if strings.HasPrefix(name, "mine/") || strings.HasPrefix(name, "swap/") {
			return nil
		}
		return team.Errorf(team.PermissionDenied, "%s is not for you", name)
	}})
	p.put(".agentteam/f", "secret")
	p.put("theirs/f", "theirs")
	p.put("mine/f", "harmless")
	p.link("mine", "swap")
	stop, done := make(chan struct{}), sync.WaitGroup{}
	done.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			to := []string{"mine", ".agentteam", "theirs"}[i%3]
			if err := errors.Join(os.Symlink(to, p.path("next")), os.Rename(p.path("next"), p.path("swap"))); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 3000 {
		for _, r := range []string{
			p.call("read_file", args{"path": "swap/f"}).Content,
			p.call("grep", args{"path": "swap", "pattern": "secret"}).Content,
		} {
			if strings.Contains(r, "secret") && !strings.Contains(r, "error") {
				t.Fatalf("read what belongs to the cluster: %s", r)
			}
		}
		p.call("write_file", args{"path": "swap/f", "content": "written"})
	}
	close(stop)
	done.Wait()
	for name, want := range map[string]string{".agentteam/f": "secret", "theirs/f": "theirs"} {
		if got := p.get(name); got != want {
			t.Errorf("%s holds %q", name, got)
		}
	}
}

// A folder of very many files does not take the memory of the process, and the answer says
// that it is not whole.
func TestWalkIsBounded(t *testing.T) {
	p := open(t, workspace.Options{})
	deep := strings.Repeat("d/", 210)
	p.put(deep+"x", "needle")
	for tool, a := range map[string]args{"glob": {"pattern": "**/x"}, "grep": {"pattern": "needle"}} {
		if got := p.ok(tool, a); !strings.HasPrefix(got, "(no matches)\n[what lies deeper than 200 folders") {
			t.Errorf("%s: %.200s", tool, got)
		}
	}
	if got := p.ok("glob", args{"pattern": "**/x", "path": strings.Repeat("d/", 100)}); got != deep+"x" {
		t.Errorf("glob from below: %.200s", got)
	}
}
