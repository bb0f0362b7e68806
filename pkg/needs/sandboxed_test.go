package needs_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"agentteam/pkg/command"
	"agentteam/pkg/needs"
	"agentteam/pkg/sandbox"
	"agentteam/pkg/team"
)

// The same jobs end well at each level that confines, without a network.
func TestJobsInSandbox(t *testing.T) {
	for _, level := range []team.Sandbox{team.Bubblewrap, team.Confined} {
		t.Run(string(level), func(t *testing.T) {
			s, err := sandbox.Find(t.Context(), level)
			switch {
			case err != nil && os.Getenv("CI") == "":
				t.Skip(err)
			case err != nil:
				t.Fatal(err)
			}
			runJobs(t, func(t *testing.T, dir string, m needs.Member, g needs.Grant) command.Runner {
				box := sandbox.Box{Dir: dir, Home: m.Home, ReadOnly: g.ReadOnly, Env: g.Env}
				// The cache of builds that runJobs names, as `paths: {write}` gives it.
				if cache, err := exec.Command("go", "env", "GOCACHE").Output(); err == nil {
					box.Write = []string{strings.TrimSpace(string(cache))}
				}
				run, err := s.Runner(box)
				if err != nil {
					t.Fatal(err)
				}
				return run
			})
		})
	}
}
