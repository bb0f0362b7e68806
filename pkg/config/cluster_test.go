package config_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"

	"agentteam/pkg/config"
	"agentteam/pkg/team"
)

func TestClusterFile(t *testing.T) {
	top := t.TempDir()
	below := filepath.Join(top, "源码 🦀", "pkg")
	if err := os.MkdirAll(below, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, _, err := config.FindCluster(below); !errors.Is(err, team.NotFound) || team.HintOf(err) == "" {
		t.Fatalf("FindCluster without one = %v, want NotFound and a hint", err)
	}
	want := config.Cluster{NATS: "nats://127.0.0.1:4000", HTTP: "http://127.0.0.1:4001", API: "http://127.0.0.1:4002", APITokenFile: "/w/api.token", PIDs: []int{1 << 30, 1 << 29}}
	if err := config.WriteCluster(top, want); err != nil {
		t.Fatal(err)
	}
	got, path, err := config.FindCluster(below)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("FindCluster = %+v, %v, want %+v", got, err, want)
	}
	if path != filepath.Join(top, ".agentteam", "cluster.json") {
		t.Errorf("path = %s", path)
	}
	text, err := os.ReadFile(path)
	if err != nil || string(text) != `{"nats":"nats://127.0.0.1:4000","http":"http://127.0.0.1:4001","api":"http://127.0.0.1:4002","pids":[1073741824,536870912],"api_token_file":"/w/api.token"}`+"\n" {
		t.Errorf("the file holds %s, %v", text, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v, want 0600", info.Mode(), err)
	}

	nearer := config.Cluster{NATS: "nats://127.0.0.1:5000"}
	if err := config.WriteCluster(below, nearer); err != nil {
		t.Fatal(err)
	}
	if got, _, err := config.FindCluster(below); err != nil || got.NATS != nearer.NATS {
		t.Errorf("FindCluster = %+v, %v, want the nearer one", got, err)
	}
	for range 2 { // the second has nothing to do
		if err := config.RemoveCluster(below); err != nil {
			t.Error(err)
		}
	}
	if got, _, err := config.FindCluster(below); err != nil || got.NATS != want.NATS {
		t.Errorf("FindCluster after removal = %+v, %v, want the one above", got, err)
	}
}

func TestClusterFileIsNeverSeenHalf(t *testing.T) {
	dir := t.TempDir()
	// Long enough that writing in place would be seen.
	c := config.Cluster{NATS: "nats://127.0.0.1:4000", PIDs: make([]int, 10_000)}
	if err := config.WriteCluster(dir, c); err != nil {
		t.Fatal(err)
	}
	var writing sync.WaitGroup
	writing.Go(func() {
		for range 10 {
			if err := config.WriteCluster(dir, c); err != nil {
				t.Error(err)
			}
		}
	})
	for range 30 {
		if got, _, err := config.FindCluster(dir); err != nil || len(got.PIDs) != len(c.PIDs) {
			t.Errorf("FindCluster while it is rewritten: %d pids, %v", len(got.PIDs), err)
		}
	}
	writing.Wait()
	if files, err := os.ReadDir(filepath.Join(dir, ".agentteam")); err != nil || len(files) != 2 { // with .gitignore
		t.Errorf("files left behind: %v, %v", files, err)
	}
}

func TestBadClusterFile(t *testing.T) {
	for _, text := range []string{"", "{", "[]", "{}", `{"nats":4222}`} {
		dir := t.TempDir()
		path := filepath.Join(dir, ".agentteam", "cluster.json")
		write(t, path, text)
		_, err := config.Load(config.Sources{Dir: dir})
		checkRefused(t, text, err, []string{path, "remove it"})

		// Nobody who names the server needs the file.
		if _, err := config.Load(config.Sources{Dir: dir, Flags: from(map[string]string{"server": "nats://a"})}); err != nil {
			t.Errorf("%q: Load with --server = %v", text, err)
		}
	}
}

func TestWriteClusterWhereItCannot(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, ".agentteam"), "a file, not a folder") // as root, permissions stop nobody
	err := config.WriteCluster(dir, config.Cluster{NATS: "nats://127.0.0.1:4000"})
	if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, ".agentteam")) {
		t.Errorf("WriteCluster = %v, want an error that names the folder", err)
	}
}

// What has become of a cluster is told by its file and by the process that the file names.
func TestFate(t *testing.T) {
	dir := t.TempDir()
	here := config.Cluster{NATS: "nats://127.0.0.1:4000", PIDs: []int{os.Getpid()}}
	if err := config.WriteCluster(dir, here); err != nil {
		t.Fatal(err)
	}
	was, path, err := config.FindCluster(dir)
	if err != nil {
		t.Fatal(err)
	}
	if now, fate := was.StateNow(path); fate != config.Runs || !now.Alive() {
		t.Errorf("its process is there: %v", fate)
	}
	here.NATS = "nats://127.0.0.1:5000"
	if err := config.WriteCluster(dir, here); err != nil {
		t.Fatal(err)
	}
	if now, fate := was.StateNow(path); fate != config.Moved || now.NATS != here.NATS {
		t.Errorf("another one runs in its place: %v, %s", fate, now.NATS)
	}
	reused := []byte(`{"nats":"nats://127.0.0.1:4000","pids":[` + strconv.Itoa(os.Getpid()) + `],"started":1}`)
	if err := os.WriteFile(path, reused, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, fate := was.StateNow(path); fate != config.Died {
		t.Errorf("its process id is another program's: %v", fate)
	}
	if err := config.RemoveCluster(dir); err != nil {
		t.Fatal(err)
	}
	if _, fate := was.StateNow(path); fate != config.Ended {
		t.Errorf("it took its file away: %v", fate)
	}
}

// A cluster file counts only if a cluster of this user has written it on this machine.
func TestForeignClusterFiles(t *testing.T) {
	dir, self := t.TempDir(), strconv.Itoa(os.Getpid())
	file := filepath.Join(dir, ".agentteam", "cluster.json")
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		`{"nats":"nats://127.0.0.1:1"}`:                                                             "",
		`{"nats":"nats://[::1]:1","api":"http://` + name + `:2"}`:                                   "",
		`{"nats":"nats://evil.example:1"}`:                                                          "names the server nats://evil.example:1, which is not on this machine",
		`{"nats":"nats://192.0.2.1:1","pids":[` + self + `]}`:                                       "names the server nats://192.0.2.1:1",
		`{"nats":"nats://127.0.0.1.evil.example:1"}`:                                                "names the server",
		`{"nats":"nats://127.0.0.1:1,nats://evil.example:1"}`:                                       "names the server",
		`{"nats":"nats://127.0.0.1:1","api":"https://evil.example","api_token_file":"/etc/passwd"}`: "names the API https://evil.example",
	} {
		write(t, file, text)
		_, _, err := config.FindCluster(dir)
		if want == "" && err != nil || want != "" && (!errors.Is(err, team.InvalidArgument) || !strings.Contains(err.Error(), want) || !strings.Contains(team.HintOf(err), "remove the file")) {
			t.Errorf("%s: %v (%s), want %q", text, err, team.HintOf(err), want)
		}
	}
	write(t, file, `{"nats":"nats://127.0.0.1:1","pids":[`+self+`]}`)
	if cl, _, err := config.FindCluster(dir); err != nil || cl.Alive() {
		t.Errorf("without the start of its process it is alive, %v", err)
	}
	if os.Geteuid() != 0 {
		t.Log("who is not root cannot give a file to another user")
		return
	}
	if err := os.Chown(file, 12345, -1); err != nil {
		t.Fatal(err)
	}
	if _, _, err := config.FindCluster(dir); !errors.Is(err, team.InvalidArgument) || !strings.Contains(err.Error(), "belongs to another user") {
		t.Errorf("of another user: %v", err)
	}
	below := filepath.Join(dir, "below") // in a folder for all it hides no cluster, and keeps none from starting
	if _, _, err := config.FindCluster(below); !errors.Is(err, team.NotFound) {
		t.Errorf("below that of another user: %v", err)
	}
}

// What git tracks of a cluster's folder came with the repository, and nothing of it counts: from there, from below, and by a link.
func TestCommittedCluster(t *testing.T) {
	for name, make := range map[string]string{
		"the cluster file": "git add -f .agentteam/cluster.json",
		"data alone":       "mkdir -p .agentteam/data/jetstream; echo > .agentteam/data/jetstream/x; git add -f .agentteam/data",
		"a link":           "mv .agentteam real; ln -s real .agentteam; git add -f .agentteam",
		"below the top":    "git -C .. init -q; git -C .. add -f work",
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			dir := filepath.Join(top, "work")
			if err := config.WriteCluster(dir, config.Cluster{NATS: "nats://127.0.0.1:1", PIDs: []int{os.Getpid()}}); err != nil {
				t.Fatal(err)
			}
			if _, _, err := config.FindCluster(dir); err != nil {
				t.Fatal(err)
			}
			script := "export GIT_CONFIG_GLOBAL=/dev/null; cd \"$1\"; mkdir sub; rm .agentteam/.gitignore; [ \"$2\" = 'below the top' ] || git init -q; " + make
			if out, err := exec.Command("sh", "-ec", script, "sh", dir, name).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			_, _, found := config.FindCluster(filepath.Join(dir, "sub"))
			_, loaded := config.Load(config.Sources{Dir: dir})
			for at, err := range map[string]error{"the folder": config.CheckClusterDir(dir), "the file, from below": found, "the settings": loaded} {
				if !errors.Is(err, team.InvalidArgument) || !strings.Contains(err.Error(), ".agentteam came with the repository") || team.HintOf(err) != "remove it: git -C "+dir+" rm -rf .agentteam" {
					t.Errorf("%s: %v (%s)", at, err, team.HintOf(err))
				}
			}
		})
	}
}

// The data of a cluster that is down is that of the settings, of the folder of its file, or of the nearest folder that has some.
func TestStore(t *testing.T) {
	top := t.TempDir()
	below := filepath.Join(top, "below")
	at := func(dir string) string { return filepath.Join(dir, ".agentteam", "data") }
	for _, dir := range []string{below, filepath.Join(at(top), "jetstream"), filepath.Join(top, "other", "jetstream")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	store := func(dir string, flags map[string]string) string {
		t.Helper()
		c, err := config.Load(config.Sources{Dir: dir, Flags: func(name string) (string, bool) { v, ok := flags[name]; return v, ok }})
		if err != nil {
			t.Fatal(err)
		}
		return c.Store()
	}
	is := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	is("of the folder", store(top, nil), at(top))
	is("of the folder above", store(below, nil), at(top))
	is("of none", store(t.TempDir(), nil), "")
	is("of a flag", store(top, map[string]string{"data": filepath.Join(top, "other")}), filepath.Join(top, "other"))
	is("of a flag, where there is none", store(top, map[string]string{"data": below}), "")
	if err := os.MkdirAll(filepath.Join(at(below), "jetstream"), 0o755); err != nil {
		t.Fatal(err)
	}
	is("of the nearer folder", store(below, nil), at(below))
	if err := config.WriteCluster(top, config.Cluster{NATS: "nats://127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	is("of the cluster's folder", store(below, nil), at(top))
	if err := config.WriteCluster(below, config.Cluster{NATS: "nats://127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(at(below)); err != nil {
		t.Fatal(err)
	}
	is("of a cluster that kept it elsewhere", store(below, nil), "")
}
