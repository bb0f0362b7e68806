package config

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"agentteam/pkg/execenv/trust"
	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/team"
)

// clusterFile is the file in [team.ClusterDir] by which commands find the cluster.
const clusterFile = "cluster.json"

// defaultStore is the default folder of the embedded server's data.
var defaultStore = filepath.Join(team.ClusterDir, "data")

// Cluster is the record that "teamctl up" leaves for commands in the same folder or below it. The file outlives a
// cluster that was killed, so its processes may be gone.
type Cluster struct {
	NATS string `json:"nats"`          // URL of the embedded server
	HTTP string `json:"http"`          // base URL of the leader's HTTP server
	API  string `json:"api,omitempty"` // base URL of the leader's HTTP API
	PIDs []int  `json:"pids"`          // first the process that runs the cluster, then its children

	APITokenFile string `json:"api_token_file,omitempty"` // path of the file that holds the API's token

	// Started is when the first of these processes was started, in the system's own count
	// ([WriteCluster] sets it): another program that is given its id later has another, and a file that was not written here
	// cannot name it.
	Started uint64 `json:"started,omitempty"`
}

// Owner returns the process that runs the cluster; 0 if the file names none.
func (c Cluster) Owner() int {
	if len(c.PIDs) == 0 {
		return 0
	}
	return c.PIDs[0]
}

// Alive reports whether the process that runs the cluster exists. After it was killed, another program with its id does
// not count.
func (c Cluster) Alive() bool {
	started, there := startOf(c.Owner())
	return there && c.Started == started
}

// ClusterState is the present state of a cluster.
type ClusterState int

// The states of a cluster.
const (
	Runs  ClusterState = iota // its process is there
	Ended                     // in order: it took its file away
	Died                      // its process is gone, and the file still there
	Moved                     // another one runs in its folder, on the same teams
)

// StateNow returns the present content of the file at path, which named the cluster c, and the state of c.
func (c Cluster) StateNow(path string) (Cluster, ClusterState) {
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

// startOf returns the start time of a process, and whether it exists and has not ended.
func startOf(pid int) (uint64, bool) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, false
	}
	stat, err := p.Stat()
	return stat.Starttime, err == nil && stat.State != "Z" && stat.State != "X"
}

// FindCluster reads the cluster file of dir or of the nearest folder above it, and also returns its path. Errors:
// [team.NotFound] if there is none; [team.InvalidArgument] if it cannot be read, is malformed, or was not written by a
// cluster of this user on this machine; those of [CheckClusterDir].
func FindCluster(dir string) (c Cluster, path string, err error) {
	start, err := filepath.Abs(dir)
	if err != nil {
		return Cluster{}, "", team.Errorf(team.InvalidArgument, "working folder: %w", err)
	}
	for at := start; ; at = filepath.Dir(at) {
		path = filepath.Join(at, team.ClusterDir, clusterFile)
		c, err := ReadCluster(path)
		switch {
		case err == nil:
			if err := CheckClusterDir(at); err != nil {
				return Cluster{}, "", err
			}
			return c, path, nil
		case errors.Is(err, errOtherUser) && at != start && at != filepath.Dir(at): // in a folder for all, such as /tmp, it is no cluster of this user
		case !errors.Is(err, team.NotFound):
			return Cluster{}, "", err
		case at == filepath.Dir(at):
			return Cluster{}, "", team.Errorf(team.NotFound, "no cluster in %s or above it", start).WithHint("start one: teamctl up")
		}
	}
}

// CheckClusterDir refuses a cluster's folder in dir that came with a repository: its author would choose the server,
// and the teams with their members' rights. Error: InvalidArgument.
func CheckClusterDir(dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), gitTime)
	defer cancel()
	if abs, err := filepath.Abs(dir); err == nil { // for the command that removes it
		dir = abs
	}
	if !gitrepo.Tracks(ctx, dir, team.ClusterDir) {
		return nil
	}
	return team.Errorf(team.InvalidArgument, "%s came with the repository, since git tracks it: its author would choose the server and the teams", filepath.Join(dir, team.ClusterDir)).
		WithHint("remove it: git -C %s rm -rf %s", trust.Quoted(dir), team.ClusterDir)
}

// gitTime bounds one reading of git's list of files.
const gitTime = 10 * time.Second

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
	var foreign error
	switch info, err := os.Stat(path); {
	case err != nil:
		return Cluster{}, team.Errorf(team.NotFound, "there is no cluster file %s", path) // it has just been removed
	case !isOwn(info):
		foreign = errOtherUser
	case !isHere(c.NATS):
		foreign = errors.New("names the server " + maskURL(c.NATS) + ", which is not on this machine")
	case c.API != "" && !isHere(c.API):
		foreign = errors.New("names the API " + maskURL(c.API) + ", which is not on this machine")
	}
	if foreign != nil {
		return Cluster{}, team.Errorf(team.InvalidArgument, "the cluster file %s %w, so that it does not count", path, foreign).WithHint("name the server with --server, or remove the file")
	}
	return c, nil
}

// errOtherUser marks the error of a cluster file that another user has written.
var errOtherUser = errors.New("belongs to another user")

// isOwn reports whether a file belongs to this user, or to root, who could change it anyway.
func isOwn(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && (int(stat.Uid) == os.Geteuid() || stat.Uid == 0)
}

// isHere reports whether a URL names this machine: by loopback, its name, or one of its addresses.
func isHere(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	host := u.Hostname()
	if name, err := os.Hostname(); err == nil && host == name || host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	if ip.IsLoopback() {
		return true
	}
	own, _ := net.InterfaceAddrs() // none that could be read
	return ip != nil && slices.ContainsFunc(own, func(a net.Addr) bool {
		of, ok := a.(*net.IPNet)
		return ok && of.IP.Equal(ip)
	})
}

// HasStore reports whether an embedded server has stored teams in this data folder.
func HasStore(data string) bool {
	info, err := os.Stat(filepath.Join(data, "jetstream"))
	return err == nil && info.IsDir()
}

// FindStore returns the folder, dir or the nearest above it, in which a cluster has stored its teams; "" if there is
// none.
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

// WriteCluster writes the cluster file of dir atomically: a reader sees the old one or the new one. Only its owner can
// read it, since the URL may contain credentials.
func WriteCluster(dir string, c Cluster) error {
	c.Started, _ = startOf(c.Owner())
	if err := writeCluster(filepath.Join(dir, team.ClusterDir), c); err != nil {
		return fmt.Errorf("write the cluster file: %w", err)
	}
	return nil
}

// MakeClusterDir creates a cluster's folder, which git ignores, so that no token in it is committed by mistake. It
// leaves existing files.
func MakeClusterDir(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(folder, ".gitignore"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil {
		_, err = f.WriteString("*\n")
		err = errors.Join(err, f.Close())
	}
	return err
}

func writeCluster(folder string, c Cluster) error {
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := MakeClusterDir(folder); err != nil {
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

// RemoveCluster removes the cluster file of dir, if it exists.
func RemoveCluster(dir string) error {
	err := os.Remove(filepath.Join(dir, team.ClusterDir, clusterFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the cluster file: %w", err)
	}
	return nil
}
