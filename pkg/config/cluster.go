package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"agentteam/pkg/team"
)

// clusterDir is where a cluster keeps its files, within the folder it was started in.
const (
	clusterDir  = ".agentteam"
	clusterFile = "cluster.json"
)

// Cluster is what "teamctl up" leaves behind for the commands run in the same
// folder or below it. The file outlives a cluster that was killed, so what it names
// need not be there any more.
type Cluster struct {
	NATS string `json:"nats"` // URL of the embedded server
	HTTP string `json:"http"` // base URL of the leader's HTTP server
	PIDs []int  `json:"pids"` // first the process that runs the cluster, then its children
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
		data, err := os.ReadFile(path)
		switch {
		case err == nil:
			if err := json.Unmarshal(data, &c); err != nil || c.NATS == "" {
				return Cluster{}, "", team.Errorf(team.InvalidArgument, "%s is not a cluster file; remove it", path)
			}
			return c, path, nil
		case !errors.Is(err, fs.ErrNotExist):
			return Cluster{}, "", team.Errorf(team.InvalidArgument, "cluster file: %w", err).WithHint("name the server with --server, or make the file readable")
		case at == filepath.Dir(at):
			return Cluster{}, "", team.Errorf(team.NotFound, "no cluster in %s or above it", start).WithHint("start one: teamctl up")
		}
	}
}

// WriteCluster writes the cluster file of dir; a reader sees the old one or the
// new one, never a part. The file is its owner's only, since the URL may hold
// credentials.
func WriteCluster(dir string, c Cluster) error {
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
