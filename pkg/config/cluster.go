package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/prometheus/procfs"

	"agentteam/pkg/team"
)

// clusterDir is where a cluster keeps its files, within the folder it was started in.
const (
	clusterDir  = ".agentteam"
	clusterFile = "cluster.json"
)

// defaultStore is where the embedded server keeps its data if nothing else was said.
var defaultStore = filepath.Join(clusterDir, "data")

// Cluster is what "teamctl up" leaves behind for the commands run in the same
// folder or below it. The file outlives a cluster that was killed, so what it names
// need not be there any more.
type Cluster struct {
	NATS string `json:"nats"`          // URL of the embedded server
	HTTP string `json:"http"`          // base URL of the leader's HTTP server
	API  string `json:"api,omitempty"` // base URL of the leader's HTTP API
	PIDs []int  `json:"pids"`          // first the process that runs the cluster, then its children

	APITokenFile string `json:"api_token_file,omitempty"` // path of the file that holds the API's token

	// Started is when the first of these processes was started, in the system's own count
	// ([WriteCluster] sets it): another program that is given its id later has another.
	Started uint64 `json:"started,omitempty"`
}

// Owner is the process that runs the cluster; 0 if the file names none.
func (c Cluster) Owner() int {
	if len(c.PIDs) == 0 {
		return 0
	}
	return c.PIDs[0]
}

// Alive reports whether the process that runs the cluster is there. One that has been
// killed, and whose id is another program's now, is not.
func (c Cluster) Alive() bool {
	started, there := startOf(c.Owner())
	return there && (c.Started == 0 || c.Started == started)
}

// Fate is what has become of a cluster.
type Fate int

// The fates of a cluster.
const (
	Runs  Fate = iota // its process is there
	Ended             // in order: it took its file away
	Died              // its process is gone, and the file still there
	Moved             // another one runs in its folder, on the same teams
)

// Fate tells what has become of the cluster that the file at path told of as c, and what
// the file tells now.
func (c Cluster) Fate(path string) (Cluster, Fate) {
	now, err := ReadCluster(path)
	switch {
	case errors.Is(err, team.NotFound):
		return c, Ended
	case err != nil: // it may be readable again soon
		return c, Runs
	case !now.Alive():
		return now, Died
	case now.Owner() != c.Owner() || now.Started != c.Started || now.NATS != c.NATS:
		return now, Moved
	}
	return now, Runs
}

// startOf returns when a process was started, and whether it is there and has not ended.
func startOf(pid int) (uint64, bool) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, false
	}
	stat, err := p.Stat()
	return stat.Starttime, err == nil && stat.State != "Z" && stat.State != "X"
}

// FindCluster reads the cluster file of dir or of the nearest folder above it, and
// returns its path too. Errors: [team.NotFound] if there is none;
// [team.InvalidArgument] if it cannot be read or holds something else.
func FindCluster(dir string) (c Cluster, path string, err error) {
	start, err := filepath.Abs(dir)
	if err != nil {
		return Cluster{}, "", team.Errorf(team.InvalidArgument, "working folder: %w", err)
	}
	for at := start; ; at = filepath.Dir(at) {
		path = filepath.Join(at, clusterDir, clusterFile)
		c, err := ReadCluster(path)
		switch {
		case err == nil:
			return c, path, nil
		case !errors.Is(err, team.NotFound):
			return Cluster{}, "", err
		case at == filepath.Dir(at):
			return Cluster{}, "", team.Errorf(team.NotFound, "no cluster in %s or above it", start).WithHint("start one: teamctl up")
		}
	}
}

// ReadCluster reads the cluster file at path. Errors: those of [FindCluster].
func ReadCluster(path string) (c Cluster, err error) {
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Cluster{}, team.Errorf(team.NotFound, "there is no cluster file %s", path)
	case err != nil:
		return Cluster{}, team.Errorf(team.InvalidArgument, "cluster file: %w", err).WithHint("name the server with --server, or make the file readable")
	}
	if err := json.Unmarshal(data, &c); err != nil || c.NATS == "" {
		return Cluster{}, team.Errorf(team.InvalidArgument, "%s is not a cluster file; remove it", path)
	}
	return c, nil
}

// HasStore reports whether an embedded server has kept teams in this data folder.
func HasStore(data string) bool {
	info, err := os.Stat(filepath.Join(data, "jetstream"))
	return err == nil && info.IsDir()
}

// FindStore returns the folder, dir or the nearest above it, in which a cluster has kept
// its teams; "" if there is none.
func FindStore(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		if HasStore(filepath.Join(at, defaultStore)) {
			return at
		}
		if at == filepath.Dir(at) {
			return ""
		}
	}
}

// WriteCluster writes the cluster file of dir; a reader sees the old one or the
// new one, never a part. The file is its owner's only, since the URL may hold
// credentials.
func WriteCluster(dir string, c Cluster) error {
	c.Started, _ = startOf(c.Owner())
	if err := writeCluster(filepath.Join(dir, clusterDir), c); err != nil {
		return fmt.Errorf("write the cluster file: %w", err)
	}
	return nil
}

func writeCluster(folder string, c Cluster) error {
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(folder, clusterFile+".*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // of no effect once renamed
	_, err = tmp.Write(append(data, '\n'))
	if err := errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), filepath.Join(folder, clusterFile))
}

// RemoveCluster removes the cluster file of dir, if it is there.
func RemoveCluster(dir string) error {
	err := os.Remove(filepath.Join(dir, clusterDir, clusterFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the cluster file: %w", err)
	}
	return nil
}
