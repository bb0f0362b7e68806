package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"agentteam/pkg/execenv"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/workspace"
)

// secondAtMost is how many times as long as the user's own the second member's first go test may take.
const secondAtMost = 1.5

// firstBuilds measures the first go test of two members of a repository, each in its tree, beside the
// user's own in the checkout. Each round has another repository, with a cache of builds that is empty.
func firstBuilds(ctx context.Context, dir string, rounds int) (all []figure, err error) {
	if _, err := exec.LookPath("go"); err != nil {
		progress("hands: go is not there, so no build is measured")
		return nil, nil
	}
	if _, err := userTest(ctx, filepath.Join(dir, "warm")); err != nil { // the standard library is in the user's cache from here on
		return nil, err
	}
	for _, level := range []team.Sandbox{team.Confined, team.Bubblewrap} {
		source := execenv.New(execenv.Options{Sandbox: level, Cache: filepath.Join(dir, "cache", string(level))})
		if _, err := source.Sandbox(ctx, team.Team{}, ""); err != nil {
			continue // which was reported before
		}
		progress("hands: the first go test in %d repositories at %s", rounds, level)
		var own, first, second []float64
		for i := range rounds {
			checkout := filepath.Join(dir, "checkouts", string(level), fmt.Sprint(i))
			took, err := userTest(ctx, checkout)
			if err != nil {
				return nil, err
			}
			own = append(own, took)
			for n, to := range []*[]float64{&first, &second} {
				if took, err = memberTest(ctx, source, checkout, fmt.Sprintf("coder-%d", n+1)); err != nil {
					return nil, err
				}
				*to = append(*to, took)
			}
		}
		all = append(all, measured("go_test_first_member_"+string(level), median(first), "ms").beside(median(own)),
			measured("go_test_second_member_"+string(level), median(second), "ms").beside(median(own)).atMost(secondAtMost))
	}
	return all, nil
}

// userTest makes a module of 20 lines and returns how long its first go test takes the user.
func userTest(ctx context.Context, dir string) (float64, error) {
	if err := plantModule(dir); err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, "bash", "-c", "go test ./...")
	cmd.Dir = dir
	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("go test of the user: %w: %s", err, out)
	}
	return milliseconds(time.Since(began)), nil
}

// memberTest is userTest of a member, in a tree of the repository.
func memberTest(ctx context.Context, source *execenv.Source, checkout, name string) (float64, error) {
	tree := checkout + "-" + name
	if err := plantModule(tree); err != nil {
		return 0, err
	}
	ws, release, err := source.Open(ctx, workspace.Work{Team: team.Team{ID: "bench", Workspace: checkout}, Member: team.Member{AgentID: team.AgentID(name), Role: "coder"},
		Tree: &workspace.Tree{Root: tree, Dir: tree}}, workspace.Options{})
	if err != nil {
		return 0, err
	}
	defer release()
	began := time.Now()
	out, passed, err := ws.Check(ctx, "go test ./...")
	if err != nil || !passed {
		return 0, fmt.Errorf("go test of %s: %w: %s", name, err, out)
	}
	return milliseconds(time.Since(began)), nil
}

func plantModule(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"go.mod": "module example.com/money\n\ngo 1.24\n",
		"money.go": `// Package money adds amounts.
package money

import "fmt"

// Cents is an amount.
type Cents int64

// String is the amount for people.
func (c Cents) String() string { return fmt.Sprintf("%d.%02d", c/100, c%100) }
`,
		"money_test.go": fmt.Sprintf(`package money

import "testing"

func TestString(t *testing.T) {
	if got := Cents(1234).String(); got != "12.34" {
		t.Error(got, %q)
	}
}
`, dir), // no test is cached
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}
