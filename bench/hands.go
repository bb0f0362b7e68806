package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/execenv/sandbox"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/command"
	"agentteam/pkg/tool/workspace"
)

// The goals of the hands bench: by how many milliseconds a command may start later.
var laterAtMost = map[team.Sandbox]float64{team.Confined: 5, team.Bubblewrap: 15}

const (
	searchFolders = 500
	searchFiles   = 100 // in each folder
)

// handsBench measures what members work with on a machine: how much later a command starts in
// a sandbox than without one, what it takes to search a large tree, beside rg, the first build of a member, and worktrees.
func handsBench(ctx context.Context, r *rig) ([]figure, error) {
	starts, searches, builds := 300, 15, 9
	if os.Getenv("BENCH") == "quick" {
		starts, searches, builds = 60, 5, 5
	}
	all, err := commandStarts(ctx, r.dir, starts)
	if err != nil {
		return nil, err
	}
	found, err := treeSearches(ctx, r.dir, searches)
	if err != nil {
		return nil, err
	}
	built, err := firstBuilds(ctx, filepath.Join(r.dir, "builds"), builds)
	if err != nil {
		return nil, err
	}
	lines, err := lineBench(ctx, r)
	return slices.Concat(all, found, built, lines), err
}

// commandStarts measures commands that do nothing, in turns.
func commandStarts(ctx context.Context, dir string, rounds int) (all []figure, err error) {
	box := sandbox.Box{Dir: filepath.Join(dir, "box"), Home: filepath.Join(dir, "home")}
	if err := os.Mkdir(box.Dir, 0o700); err != nil {
		return nil, err
	}
	runners := map[team.Sandbox]command.Runner{team.Unconfined: command.Plain{}}
	levels := []team.Sandbox{team.Unconfined}
	for _, level := range []team.Sandbox{team.Confined, team.Bubblewrap} {
		s, err := sandbox.Find(ctx, level)
		if err != nil {
			progress("hands: the level %s is left out: %v", level, err)
			continue
		}
		if runners[level], err = s.Runner(box); err != nil {
			return nil, err
		}
		levels = append(levels, level)
	}
	progress("hands: %d starts of a command at %v", rounds, levels)
	took := map[team.Sandbox][]float64{}
	for range rounds {
		for _, level := range levels {
			began := time.Now()
			exit, err := runners[level].Run(ctx, command.Command{Args: []string{"bash", "-c", "true"}, Dir: box.Dir, Output: io.Discard})
			if err != nil || exit.Code != 0 {
				return nil, fmt.Errorf("a command at %s: %+v, %w", level, exit, err)
			}
			took[level] = append(took[level], milliseconds(time.Since(began)))
		}
	}
	plain := median(took[team.Unconfined])
	for _, level := range levels[1:] {
		p50 := median(took[level])
		all = append(all, measured("start_p50_"+string(level), p50, "ms").beside(plain),
			measured("start_later_"+string(level), p50-plain, "ms").atMost(laterAtMost[level]))
	}
	return all, nil
}

// treeSearches measures the tools glob and grep on many files, in turns with rg.
func treeSearches(ctx context.Context, dir string, rounds int) (all []figure, err error) {
	tree := filepath.Join(dir, "tree")
	progress("hands: %d searches of %d files", rounds, searchFolders*searchFiles)
	if err := plantTree(tree); err != nil {
		return nil, err
	}
	w, err := workspace.Open(tree, command.Plain{}, workspace.Options{})
	if err != nil {
		return nil, err
	}
	defer w.Close() // it was only read
	set, err := tool.NewSet(nil, w.Tools()...)
	if err != nil {
		return nil, err
	}
	rg, err := exec.LookPath("rg")
	if err != nil {
		progress("hands: rg is not there, so the searches stand alone")
	}
	for _, s := range []struct {
		tool      string
		arguments map[string]string
		rg        []string
	}{
		{"glob", map[string]string{"pattern": "**/f7.go"}, []string{"--files", "--glob", "**/f7.go"}},
		{"grep", map[string]string{"pattern": "needle [0-9]+"}, []string{"--line-number", "needle [0-9]+"}},
	} {
		text, err := json.Marshal(s.arguments)
		if err != nil {
			return nil, err
		}
		var ours, theirs []float64
		for range rounds {
			began := time.Now()
			result := set.Run(ctx, tool.Call{Name: s.tool, Arguments: string(text)})
			ours = append(ours, milliseconds(time.Since(began)))
			if lines := strings.Count(result.Content, "\n"); result.IsError || lines < 50 {
				return nil, fmt.Errorf("%s found %d lines: %.200s", s.tool, lines, result.Content)
			}
			if rg == "" {
				continue
			}
			cmd := exec.CommandContext(ctx, rg, s.rg...)
			cmd.Dir = tree
			began = time.Now()
			if err := cmd.Run(); err != nil {
				return nil, fmt.Errorf("rg: %w", err)
			}
			theirs = append(theirs, milliseconds(time.Since(began)))
		}
		f := measured(fmt.Sprintf("%s_%d_files_p50", s.tool, searchFolders*searchFiles), median(ours), "ms")
		if rg != "" {
			f = f.beside(median(theirs))
		}
		all = append(all, f)
	}
	return all, nil
}

// plantTree makes the files to be searched, of 2 KB each. One in 500 has what is looked for.
func plantTree(dir string) error {
	filler := strings.Repeat("func filler() int { return 42 } // nothing to see here\n", 36)
	for i := range searchFolders {
		folder := filepath.Join(dir, fmt.Sprintf("a%02d", i%25), fmt.Sprintf("b%03d", i))
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
		for j := range searchFiles {
			text := filler
			if j == i%500 {
				text += fmt.Sprintf("needle %d\n", i)
			}
			if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("f%d.go", j)), []byte(text), 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}
