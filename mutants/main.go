// Command mutants shows that the tests catch the bugs they are there for. Each
// patch under testdata plants one in a copy of the tree; the test that its header
// names must then fail, by an assertion. So the product's code bears no trace of
// the bugs, and a test that has gone blind is noticed.
//
//	go run ./mutants [NAME...]
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"agentteam/pkg/teamtest/testenv"
)

// mutant is one planted bug.
type mutant struct {
	name  string
	patch string // path of the file
	bug   string // from the header: what is wrong with it
	pkg   string // from the header: where the test is
	test  string
}

const (
	patches = "mutants/testdata"
	// limit is for one test, which may wait for what a bug keeps from happening.
	limit = 5 * time.Minute
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, names []string) error {
	all, err := load(patches)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !slices.ContainsFunc(all, func(m mutant) bool { return m.name == name }) {
			return fmt.Errorf("there is no mutant %q in %s", name, patches)
		}
	}
	survived := 0
	for _, m := range all {
		if len(names) > 0 && !slices.Contains(names, m.name) {
			continue
		}
		begun := time.Now()
		if err := m.caught(ctx); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			survived++
			fmt.Printf("NOT CAUGHT  %s (%s): %v\n", m.name, m.bug, err)
			continue
		}
		fmt.Printf("caught      %s (%s) by %s in %.1f s\n", m.name, m.bug, m.test, time.Since(begun).Seconds())
	}
	if survived > 0 {
		return fmt.Errorf("%d not caught", survived)
	}
	return nil
}

// load reads the patches of dir.
func load(dir string) (all []mutant, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("there are no patches in %s: run it in the root of the repository", dir)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		m := mutant{name: strings.TrimSuffix(filepath.Base(file), ".patch"), patch: file}
		header, _, _ := strings.Cut(string(data), "\n--- ")
		for line := range strings.Lines(header) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			switch key {
			case "Bug":
				m.bug = value
			case "Test":
				m.pkg, m.test, _ = strings.Cut(value, " ")
			}
		}
		if m.bug == "" || m.test == "" {
			return nil, fmt.Errorf("%s has no header \"Bug: ...\" and \"Test: ./pkg/... TestName\"", file)
		}
		all = append(all, m)
	}
	return all, nil
}

// caught plants the bug in a copy of the tree and returns nil if the test fails.
func (m mutant) caught(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "mutant-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := copyTree(dir); err != nil {
		return err
	}
	if err := m.plant(dir); err != nil {
		return err
	}
	if out, err := command(ctx, dir, "go", "vet", m.pkg).CombinedOutput(); err != nil {
		return fmt.Errorf("%s does not build with the bug: %w\n%s", m.pkg, err, out)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	test := command(ctx, dir, "go", "test", "-json", "-count=1", "-timeout", (limit - 10*time.Second).String(), "-run", "^"+m.test+"$", m.pkg)
	out, err := test.Output()
	return m.judge(out, err)
}

// judge tells an assertion that failed from a panic, a test that hung, and one that
// was not there.
func (m mutant) judge(out []byte, err error) error {
	var printed strings.Builder
	failed, passed := false, false
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var e struct{ Action, Test, Output string }
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		printed.WriteString(e.Output)
		failed = failed || e.Action == "fail" && e.Test == m.test
		passed = passed || e.Action == "pass" && e.Test == m.test
	}
	switch {
	case strings.Contains(printed.String(), "\npanic: "):
		return fmt.Errorf("%s panics or hangs in place of failing:\n%s", m.test, &printed)
	case failed:
		return nil
	case passed:
		return fmt.Errorf("%s passes", m.test)
	}
	return fmt.Errorf("%s was not run: %w\n%s", m.test, err, &printed)
}

// plant applies the patch, every line of which must fit.
func (m mutant) plant(dir string) error {
	patch, err := filepath.Abs(m.patch)
	if err != nil {
		return err
	}
	if out, err := command(context.Background(), dir, "git", "apply", patch).CombinedOutput(); err != nil {
		return fmt.Errorf("the patch does not apply any more: %w\n%s", err, out)
	}
	return nil
}

// copyTree copies the files that git knows or would add.
func copyTree(dir string) error {
	list, err := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return fmt.Errorf("git ls-files: %w", err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		info, err := os.Lstat(name)
		if errors.Is(err, os.ErrNotExist) {
			continue // removed, and not committed yet
		}
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, data, info.Mode().Perm()); err != nil {
			return err
		}
	}
	return nil
}

// command is one that runs in dir and takes no repository above it for its own.
func command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir), testenv.AllEnv+"=1")
	return cmd
}
