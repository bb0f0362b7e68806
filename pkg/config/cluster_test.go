package config_test

import (
	"errors"
	"os"
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
	if files, err := os.ReadDir(filepath.Join(dir, ".agentteam")); err != nil || len(files) != 1 {
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
	if now, fate := was.Fate(path); fate != config.Runs || !now.Alive() {
		t.Errorf("its process is there: %v", fate)
	}
	here.NATS = "nats://127.0.0.1:5000"
	if err := config.WriteCluster(dir, here); err != nil {
		t.Fatal(err)
	}
	if now, fate := was.Fate(path); fate != config.Moved || now.NATS != here.NATS {
		t.Errorf("another one runs in its place: %v, %s", fate, now.NATS)
	}
	reused := []byte(`{"nats":"nats://127.0.0.1:4000","pids":[` + strconv.Itoa(os.Getpid()) + `],"started":1}`)
	if err := os.WriteFile(path, reused, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, fate := was.Fate(path); fate != config.Died {
		t.Errorf("its process id is another program's: %v", fate)
	}
	if err := config.RemoveCluster(dir); err != nil {
		t.Fatal(err)
	}
	if _, fate := was.Fate(path); fate != config.Ended {
		t.Errorf("it took its file away: %v", fate)
	}
}
