package permission

import (
	"io/fs"
	"path/filepath"
	"strings"
)

// maxHeld bounds the protected paths of a sandbox: each is a mount of each command.
const maxHeld = 200

// Held returns the files and folders of a workspace under deny rules, for reading or only for changing, as absolute paths, none below
// another of its list, without symbolic links and folders .git. whole is false if there are more than it returns or looks at.
func (r *Rules) Held(dir string) (unread, unchanged []string, whole bool) {
	dir = filepath.Clean(dir)
	seen := 0
	about := func(path, tool string) bool {
		for _, rule := range r.deny {
			if !rule.all && rule.opens(tool == "read_file", tool == "edit_file") && rule.files.matches(path, dir, true) {
				return true
			}
		}
		return false
	}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch seen++; {
		case seen > 2*maxWalk || len(unread)+len(unchanged) >= maxHeld:
			return fs.SkipAll
		case path == dir || err != nil || e.Type()&fs.ModeSymlink != 0:
			return nil
		case e.Name() == ".git":
		case about(path, "read_file"):
			unread = append(unread, path)
		default:
			in := len(unchanged) > 0 && strings.HasPrefix(path, unchanged[len(unchanged)-1]+"/")
			if !in && about(path, "edit_file") {
				unchanged = append(unchanged, path)
			}
			return nil
		}
		if e.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	return unread, unchanged, err == nil && seen <= 2*maxWalk && len(unread)+len(unchanged) < maxHeld
}
