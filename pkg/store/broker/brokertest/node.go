package brokertest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/logger"
	"github.com/nats-io/nats-server/v2/server"
)

// nodeEnv is the environment variable that makes a test's binary a NATS server; its value is a nodeConfig as JSON.
const nodeEnv = "AGENTTEAM_BROKERTEST_NODE"

// nodeConfig configures a server of a Cluster.
type nodeConfig struct {
	Name            string
	Dir             string
	Port, RoutePort int
	Routes          []string // of all servers; none = not in a cluster
	RemoveDir       bool     // at the end
}

// A test binary that is to be a server must not begin to run tests. Otherwise each test package would need a TestMain for
// that, and a package without it would start itself again without end.
func init() {
	value := os.Getenv(nodeEnv)
	if value == "" {
		return
	}
	if err := serve(value); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve runs a NATS server until its parent process closes stdin or ends.
func serve(value string) error {
	var cfg nodeConfig
	if err := json.Unmarshal([]byte(value), &cfg); err != nil {
		return err
	}
	o := &server.Options{
		ServerName: cfg.Name, Host: "127.0.0.1", Port: cfg.Port, NoSigs: true,
		JetStream: true, StoreDir: cfg.Dir, SyncInterval: time.Second, DisableJetStreamBanner: true,
	}
	if len(cfg.Routes) > 0 {
		// Clients get all addresses anyway, and a client behind a proxy must not learn of others.
		o.Cluster = server.ClusterOpts{Name: "brokertest", Host: "127.0.0.1", Port: cfg.RoutePort, NoAdvertise: true}
		for _, r := range cfg.Routes {
			u, err := url.Parse(r)
			if err != nil {
				return err
			}
			o.Routes = append(o.Routes, u)
		}
	}
	s, err := server.NewServer(o)
	if err != nil {
		return err
	}
	s.SetLoggerV2(logger.NewStdLogger(false, false, false, false, false), false, false, false)
	s.Start()
	if !s.ReadyForConnections(20 * time.Second) {
		return errors.New("the server is not ready")
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	s.Shutdown()
	s.WaitForShutdown()
	if cfg.RemoveDir {
		return os.RemoveAll(cfg.Dir)
	}
	return nil
}
