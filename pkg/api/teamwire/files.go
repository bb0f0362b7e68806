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
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"agentteam/pkg/team"
	"agentteam/pkg/tool/workspace"
)

// entry is a file or a folder of the workspace.
type entry struct {
	Name        string `json:"name"`
	Path        string `json:"path"` // from the workspace, with slashes
	IsDirectory bool   `json:"isDirectory"`
	IsFile      bool   `json:"isFile"`
	Size        int64  `json:"size"` // 0 of what is no file
}

// maxEntries bounds the listed entries of one folder.
const maxEntries = 10_000

// tree lists a folder, its folders first.
func (s *server) tree(r *http.Request, in *input) (any, error) {
	name := path.Clean(in.textOr("path", "."))
	ws, release, err := s.files(r, in)
	if err != nil {
		return nil, err
	}
	defer release()
	found, err := ws.List(name, maxEntries)
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, team.Errorf(team.NotFound, "Directory not found")
	}
	if err != nil {
		return nil, refused(name, err)
	}
	list := []entry{}
	for _, f := range found {
		e := entry{Name: path.Base(f.Path), Path: f.Path}
		// What a link points to is shown as it is, unless that is outside.
		if f.Info != nil {
			if s.private(f.Info) {
				continue
			}
			if e.IsDirectory, e.IsFile = f.Info.IsDir(), f.Info.Mode().IsRegular(); e.IsFile {
				e.Size = f.Info.Size()
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

// file is the content of a file.
type file struct {
	Path      string `json:"path"`
	Content   string `json:"content"`
	Size      int64  `json:"size"` // of the whole
	Truncated bool   `json:"truncated"`
	Language  string `json:"language"`
}

// maxContent bounds the shown part of a file, in bytes.
const maxContent = 1 << 20

// notText replaces the content of a binary file.
const notText = "(Binary file — cannot display)"

// content returns a file; of a binary file only that it is one.
func (s *server) content(r *http.Request, in *input) (any, error) {
	asked := in.text("path")
	if err := in.err(); err != nil {
		return nil, err
	}
	ws, release, err := s.files(r, in)
	if err != nil {
		return nil, err
	}
	defer release()
	name := path.Clean(asked)
	f, info, err := ws.Regular(name)
	if err != nil {
		return nil, refused(name, err)
	}
	defer f.Close()
	if s.private(info) {
		return nil, team.Errorf(team.PermissionDenied, "The file is not shown")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxContent))
	if err != nil {
		return nil, err
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

// files opens the shown files: those of a session, if one is named, else those of the folder; the caller calls release.
func (s *server) files(r *http.Request, in *input) (ws *workspace.Workspace, release func(), err error) {
	if in.query.Has("user_id") || in.query.Has("session_id") {
		n := in.pair()
		if err := in.err(); err != nil {
			return nil, nil, err
		}
		t, oerr := s.open(r.Context(), n)
		if oerr != nil {
			return nil, nil, oerr
		}
		ws, release, err = t.Files(r.Context())
	} else {
		ws, release, err = s.Client.FilesIn(r.Context(), s.Workspace)
	}
	if errors.Is(err, team.NotFound) {
		err = team.Errorf(team.NotFound, "There is no workspace on this machine")
	}
	return ws, release, err
}

// private reports whether a file is never shown, under any name.
func (s *server) private(info fs.FileInfo) bool {
	return slices.ContainsFunc(s.Private, func(name string) bool {
		other, err := os.Stat(name)
		return err == nil && os.SameFile(info, other)
	})
}

// refused returns the error of the workspace in the words of this wire.
func refused(name string, err error) error {
	var number syscall.Errno
	switch {
	case errors.Is(err, fs.ErrPermission):
		return team.Errorf(team.PermissionDenied, "%s may not be read", team.Clean(name, 200))
	case errors.Is(err, team.PermissionDenied):
		return team.Errorf(team.PermissionDenied, "Path outside the workspace")
	case errors.Is(err, team.NotFound), errors.As(err, &number), strings.ContainsRune(name, 0):
		return team.Errorf(team.NotFound, "File not found: %s", team.Clean(name, 200))
	case errors.Is(err, team.InvalidArgument): // a folder, a pipe, a device
		return team.Errorf(team.NotFound, "File not found")
	}
	return err
}

const plain = "plaintext"

// languages maps file extensions to the names that highlighters use.
var languages = map[string]string{
	".py": "python", ".js": "javascript", ".ts": "typescript", ".tsx": "tsx", ".jsx": "jsx", ".json": "json",
	".yaml": "yaml", ".yml": "yaml", ".md": "markdown", ".html": "html", ".css": "css", ".sh": "bash", ".bash": "bash",
	".toml": "toml", ".xml": "xml", ".sql": "sql", ".rs": "rust", ".go": "go", ".java": "java", ".rb": "ruby",
}

func languageOf(name string) string {
	return cmp.Or(languages[strings.ToLower(path.Ext(name))], plain)
}
