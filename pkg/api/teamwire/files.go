package teamwire

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"agentteam/pkg/config"
	"agentteam/pkg/folder"
	"agentteam/pkg/team"
)

// entry is a file or a folder of the workspace.
type entry struct {
	Name        string `json:"name"`
	Path        string `json:"path"` // from the workspace, with slashes
	IsDirectory bool   `json:"isDirectory"`
	IsFile      bool   `json:"isFile"`
	Size        int64  `json:"size"` // 0 of what is no file
}

// maxEntries bounds what is listed of one folder.
const maxEntries = 10_000

// tree lists a folder, its folders first.
func (s *server) tree(r *http.Request) (any, error) {
	in := queryOf(r)
	name := in.textOr("path", ".")
	root, name, err := s.place(name)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	dir, err := folder.Dir(root, name)
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, team.Errorf(team.NotFound, "Directory not found")
	}
	if err != nil {
		return nil, outside(root, name, err)
	}
	defer dir.Close()
	found, err := dir.ReadDir(maxEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, outside(root, name, err)
	}
	list := []entry{}
	for _, f := range found {
		if s.ofCluster(filepath.Join(name, f.Name())) {
			continue
		}
		e := entry{Name: f.Name(), Path: path.Join(filepath.ToSlash(name), f.Name())}
		// What a link points to is told as it is, unless that is outside.
		if info, err := root.Stat(filepath.Join(name, f.Name())); err == nil {
			if s.private(info) {
				continue
			}
			if e.IsDirectory, e.IsFile = info.IsDir(), info.Mode().IsRegular(); e.IsFile {
				e.Size = info.Size()
			}
		}
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b entry) int {
		if a.IsDirectory != b.IsDirectory {
			if a.IsDirectory {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	return list, nil
}

// file is what a file holds.
type file struct {
	Path      string `json:"path"`
	Content   string `json:"content"`
	Size      int64  `json:"size"` // of the whole
	Truncated bool   `json:"truncated"`
	Language  string `json:"language"`
}

// maxContent is how much of a file is shown, in bytes.
const maxContent = 1 << 20

// notText is shown instead of what is no text.
const notText = "(Binary file — cannot display)"

// content shows a file. Of one that is no text, only that is told.
func (s *server) content(r *http.Request) (any, error) {
	in := queryOf(r)
	asked := in.text("path")
	if err := in.err(); err != nil {
		return nil, err
	}
	root, name, err := s.place(asked)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, info, err := folder.File(root, name)
	if errors.Is(err, team.InvalidArgument) {
		return nil, team.Errorf(team.NotFound, "File not found")
	}
	if err != nil {
		return nil, outside(root, name, err)
	}
	defer f.Close()
	if s.private(info) {
		return nil, team.Errorf(team.PermissionDenied, "The file is not shown")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxContent))
	if err != nil {
		return nil, outside(root, name, err)
	}
	told := file{Path: asked, Content: string(data), Size: info.Size(), Truncated: info.Size() > maxContent, Language: languageOf(name)}
	if told.Truncated { // not in the middle of a character
		for n := 0; n < utf8.UTFMax && !utf8.ValidString(told.Content); n++ {
			told.Content = told.Content[:len(told.Content)-1]
		}
	}
	if !utf8.ValidString(told.Content) || bytes.IndexByte(data, 0) >= 0 {
		told.Content, told.Truncated, told.Language = notText, false, plain
	}
	return told, nil
}

// place opens the workspace, and returns a name as a place in it. Errors: PermissionDenied
// for what is outside, and for the folder of a cluster.
func (s *server) place(name string) (*os.Root, string, error) {
	local := filepath.FromSlash(path.Clean(name))
	if rel, err := filepath.Rel(s.Workspace, local); filepath.IsAbs(local) && err == nil {
		local = rel
	}
	if !filepath.IsLocal(local) || s.ofCluster(local) {
		return nil, "", errOutside
	}
	root, err := folder.Root(s.Workspace)
	if errors.Is(err, fs.ErrNotExist) {
		err = team.Errorf(team.NotFound, "There is no workspace on this machine")
	}
	return root, local, err
}

// ofCluster reports whether a name leads, by links or without, to the folder in which a
// cluster keeps its teams and its tokens: whoever may only read must not find the full one.
func (s *server) ofCluster(name string) bool {
	if root, err := filepath.EvalSymlinks(s.Workspace); err == nil { // which may itself lie in such a folder
		if real, err := filepath.EvalSymlinks(filepath.Join(root, name)); err == nil {
			name = strings.TrimPrefix(real, root)
		}
	}
	return slices.Contains(strings.Split(filepath.ToSlash(name), "/"), config.ClusterDir)
}

// private reports whether a file is one that nobody is shown, under whatever name.
func (s *server) private(info fs.FileInfo) bool {
	return slices.ContainsFunc(s.Private, func(name string) bool {
		other, err := os.Stat(name)
		return err == nil && os.SameFile(info, other)
	})
}

var errOutside = team.Errorf(team.PermissionDenied, "Path outside the workspace")

// outside is the error of a file that could not be opened, read or looked at.
func outside(root *os.Root, name string, err error) error {
	var escape, p *fs.PathError
	_, up := root.Lstat("..")
	if errors.As(up, &escape) && errors.As(err, &p) && p.Err == escape.Err {
		return errOutside
	}
	for _, none := range []error{fs.ErrNotExist, syscall.ENOTDIR, syscall.EINVAL, syscall.ENAMETOOLONG, syscall.ELOOP} {
		if errors.Is(err, none) {
			return team.Errorf(team.NotFound, "File not found: %s", team.Clean(name, 200))
		}
	}
	if errors.Is(err, fs.ErrPermission) {
		return team.Errorf(team.PermissionDenied, "%s may not be read", team.Clean(name, 200))
	}
	return err
}

const plain = "plaintext"

// languages are the names by which highlighters know what has these endings.
var languages = map[string]string{
	".py": "python", ".js": "javascript", ".ts": "typescript", ".tsx": "tsx", ".jsx": "jsx", ".json": "json",
	".yaml": "yaml", ".yml": "yaml", ".md": "markdown", ".html": "html", ".css": "css", ".sh": "bash", ".bash": "bash",
	".toml": "toml", ".xml": "xml", ".sql": "sql", ".rs": "rust", ".go": "go", ".java": "java", ".rb": "ruby",
}

func languageOf(name string) string {
	return cmp.Or(languages[strings.ToLower(filepath.Ext(name))], plain)
}
