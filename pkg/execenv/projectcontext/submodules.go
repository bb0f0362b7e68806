package projectcontext

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"agentteam/pkg/tool/safefs"
)

// pathOf matches the line of .gitmodules with the folder of a submodule.
var pathOf = regexp.MustCompile(`(?m)^[ \t]*path[ \t]*=[ \t]*(.*?)[ \t\r]*$`)

const (
	mostModules = 20
	mostListed  = 64 << 10 // bytes of .gitmodules
	mostName    = 200      // bytes of the name of a submodule
)

// emptyModules returns the submodules below a workspace without files there, relative to the workspace, at most a few: a tree has
// files of none, and a checkout has none until a person fetches them.
func emptyModules(workspace string) (names []string) {
	top := topOf(workspace)
	root, err := safefs.Root(top)
	if err != nil {
		return nil
	}
	defer root.Close() // nothing is written
	f, _, err := safefs.File(root, ".gitmodules")
	if err != nil {
		return nil
	}
	defer f.Close() // it was only read
	list, err := io.ReadAll(io.LimitReader(f, mostListed))
	if err != nil {
		return nil
	}
	for _, line := range pathOf.FindAllSubmatch(list, -1) {
		name := string(line[1])
		if plain, err := strconv.Unquote(name); err == nil {
			name = plain
		}
		below, err := filepath.Rel(workspace, filepath.Join(top, name))
		if err != nil || !filepath.IsLocal(below) || below == "." || len(names) == mostModules || len(name) > mostName || strings.ContainsFunc(name, unprintable) {
			continue
		}
		all, err := fs.ReadDir(root.FS(), filepath.ToSlash(filepath.Clean(name)))
		if err == nil && len(all) == 0 || errors.Is(err, fs.ErrNotExist) {
			names = append(names, filepath.ToSlash(below))
		}
	}
	return names
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }
