package trust

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"agentteam/pkg/team"
)

// Key is a key of a file that counts only once the file is trusted, with its value in one line of YAML.
type Key struct {
	Name  string `json:"name"` // its path, such as limits.max_teammates
	Value string `json:"value"`
}

var password = regexp.MustCompile(`://[^/@\s]*@`)

func (k Key) String() string {
	return team.Clean(k.Name, 200) + ": " + password.ReplaceAllString(k.Value, "://...@")
}

// Trusted is a state of a file that a person has trusted, or refused to trust.
type Trusted struct {
	File    string            `json:"file"`           // an absolute path
	SHA256  string            `json:"sha256"`         // of its content, in hex
	Runs    map[string]string `json:"runs,omitempty"` // the same of each file that its keys run, by the path; "" = there was none
	Keys    []Key             `json:"keys"`           // that count by this
	Refused bool              `json:"refused,omitempty"`
	At      time.Time         `json:"at"`
}

// Holds reports whether the file, with this content, and the files that it runs are in the trusted state.
func (t Trusted) Holds(data []byte) bool {
	if t.SHA256 != digest(data) {
		return false
	}
	for path, sum := range t.Runs {
		if digestOf(path) != sum {
			return false
		}
	}
	return true
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// digestOf returns the digest of a regular file; "" if none can be read.
func digestOf(path string) string {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return digest(data)
}

// Store is the list of the files that a user has trusted. Safe for concurrent use, also by several processes.
type Store struct {
	dir string // the user's configuration folder of agentteam; "" = the user has none
}

// OfUser returns the store of the user that runs the process.
func OfUser() Store {
	dir, err := os.UserConfigDir()
	if err != nil {
		return Store{}
	}
	return Store{filepath.Join(dir, "agentteam")}
}

const (
	fileName = "trusted.json"
	fileMode = 0o600
	dirMode  = 0o700
	version  = 2
)

// content is the store's file.
type content struct {
	V     int       `json:"v"`
	Files []Trusted `json:"files"`
}

// List returns the trusted files, sorted by path. Errors: InvalidState if the store cannot be read; then nothing is trusted.
func (s Store) List() ([]Trusted, error) {
	if s.dir == "" {
		return nil, nil
	}
	path := filepath.Join(s.dir, fileName)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && info.Mode().Perm()&0o022 != 0 {
		return nil, team.Errorf(team.InvalidState, "%s can be written by others, so that it says nothing", path).WithHint("look what it holds; then: chmod 600 %s", path)
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(path)
	}
	var c content
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err != nil {
		return nil, team.Errorf(team.InvalidState, "the list of trusted files cannot be read: %s: %w", path, err).WithHint("remove it, and trust the files again")
	}
	if c.V != version { // another build has asked about other keys
		return nil, nil
	}
	return c.Files, nil
}

// Judge returns a file whose keys wait, to which its reader adds them ([Waiting.Wait]); nil if all keys of the file count: it is in
// the user's configuration folder, or its present state is trusted. shown is its name for people.
func (s Store) Judge(file, shown string, data []byte) *Waiting {
	w := &Waiting{File: shown, SHA256: digest(data), path: file}
	if abs, err := filepath.Abs(file); err == nil { // what the file runs is looked for from other folders, too
		w.path = abs
	}
	if s.dir == "" {
		return w
	}
	if s.owns(file) {
		return nil
	}
	path, err := canonical(file)
	if err != nil {
		return w
	}
	list, _ := s.List() // what cannot be read trusts nothing; `teamctl trust` reports why
	i := slices.IndexFunc(list, func(t Trusted) bool { return t.File == path })
	if i < 0 {
		return w
	}
	last := list[i]
	holds := last.Holds(data)
	switch {
	case holds && !last.Refused:
		return nil
	case !last.Refused:
		w.before = last.Keys
	}
	w.Refused = holds
	return w
}

// owns reports whether a file is in the user's configuration folder.
func (s Store) owns(file string) bool {
	dir, err := filepath.EvalSymlinks(s.dir)
	if err != nil {
		return false
	}
	real, err := filepath.EvalSymlinks(file)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	return err == nil && strings.HasPrefix(real, dir+string(filepath.Separator))
}

// canonical returns the one path that identifies a file, however its folder was reached.
func canonical(file string) (string, error) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(abs))
	return filepath.Join(dir, filepath.Base(abs)), err
}

// Add trusts a file in the state of w; with refuse the person is not asked again while that stays. Errors: InvalidState; ctx's.
func (s Store) Add(ctx context.Context, w Waiting, refuse bool) error {
	path, err := canonical(w.path)
	if err != nil {
		return team.Errorf(team.InvalidArgument, "%w", err)
	}
	if !utf8.ValidString(path) { // JSON has no such names
		return team.Errorf(team.InvalidArgument, "the path %q is not UTF-8", path).WithHint("rename the folder, or have the settings in your own configuration folder")
	}
	return s.change(ctx, func(list []Trusted) ([]Trusted, error) {
		list = slices.DeleteFunc(list, func(t Trusted) bool { return t.File == path })
		return append(list, Trusted{File: path, SHA256: w.SHA256, Runs: w.Runs, Keys: append([]Key{}, w.Keys...), Refused: refuse, At: time.Now().UTC().Truncate(time.Second)}), nil
	})
}

// Remove withdraws the trust in a file, which may no longer exist. Errors: NotFound if it was not trusted; those of Add.
func (s Store) Remove(ctx context.Context, file string) error {
	path, err := canonical(file)
	if err != nil { // its folder is gone
		path, _ = filepath.Abs(file)
	}
	return s.change(ctx, func(list []Trusted) ([]Trusted, error) {
		left := slices.DeleteFunc(slices.Clone(list), func(t Trusted) bool { return t.File == path })
		if len(left) == len(list) {
			return nil, team.Errorf(team.NotFound, "%s is not trusted", file).WithHint("teamctl trust lists what is")
		}
		return left, nil
	})
}

// change replaces the list with the result of f, one process at a time.
func (s Store) change(ctx context.Context, f func([]Trusted) ([]Trusted, error)) error {
	if s.dir == "" {
		return team.Errorf(team.InvalidState, "there is no folder for your settings").WithHint("set HOME or XDG_CONFIG_HOME")
	}
	failed := func(err error) error {
		if err == nil || team.CodeOf(err) != "" || ctx.Err() != nil {
			return err
		}
		return team.Errorf(team.InvalidState, "the list of trusted files cannot be written: %w", err)
	}
	if err := os.MkdirAll(s.dir, dirMode); err != nil {
		return failed(err)
	}
	unlock, err := lock(ctx, filepath.Join(s.dir, "trusted.lock"))
	if err != nil {
		return failed(err)
	}
	defer unlock()
	list, err := s.List()
	if err == nil {
		list, err = f(list)
	}
	if err != nil {
		return err
	}
	slices.SortFunc(list, func(a, b Trusted) int { return strings.Compare(a.File, b.File) })
	data, err := json.MarshalIndent(content{version, append([]Trusted{}, list...)}, "", "  ")
	if err == nil {
		err = replace(filepath.Join(s.dir, fileName), append(data, '\n'))
	}
	return failed(err)
}

// replace writes a file atomically.
func replace(path string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), fileName+".*") // of mode 0600
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
	}
	return err
}

// again is the interval of trying a lock that another process holds, for a few milliseconds.
const again = 10 * time.Millisecond

func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(again)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil // which unlocks it
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			f.Close()
			return nil, err
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// Quoted returns a file's name quoted for a shell; an interactive one would expand a "!" outside of single quotes.
func Quoted(file string) string {
	if strings.Contains(file, "!") && !strings.ContainsFunc(file, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "'" + strings.ReplaceAll(file, "'", `'\''`) + "'"
	}
	text, err := syntax.Quote(file, syntax.LangBash)
	if err != nil { // no shell takes it
		return strconv.Quote(file)
	}
	return text
}

// Waiting is the part of a file that waits until a person trusts the file's present state.
type Waiting struct {
	File    string            `json:"file"`           // as people see it from here
	Role    string            `json:"role,omitempty"` // whose file it is; "" = the settings
	SHA256  string            `json:"sha256"`         // of the file's content, in hex
	Runs    map[string]string `json:"runs,omitempty"` // as in [Trusted]
	Keys    []Key             `json:"keys"`
	Refused bool              `json:"refused,omitempty"` // a person was asked about the file as it stands, and does not want it

	path   string // of the file
	before []Key  // that were trusted of the file before it was changed
}

// Wait adds a key. It is a callback of package strictyaml.
func (w *Waiting) Wait(name, value string) { w.Keys = append(w.Keys, Key{name, value}) }

// Run adds the files of the repository that a key's command runs: their content is trusted with the key.
func (w *Waiting) Run(command string) {
	top := filepath.Dir(w.path)
	for word := range strings.FieldsFuncSeq(command, func(r rune) bool { return strings.ContainsRune(" \t\n;|&()<>'\"`$={}", r) }) {
		path := word
		if !filepath.IsAbs(path) {
			path = filepath.Join(top, word)
		}
		sum := digestOf(path)
		if sum == "" && !strings.Contains(word, "/") { // a program or an argument
			continue
		}
		if w.Runs == nil {
			w.Runs = map[string]string{}
		}
		w.Runs[path] = sum
	}
}

// Names returns the names of the keys.
func (w Waiting) Names() (names []string) {
	for _, k := range w.Keys {
		names = append(names, k.Name)
	}
	return names
}

// String returns a line for people that can trust the file.
func (w Waiting) String() string {
	who := w.File
	if w.Role != "" {
		who = fmt.Sprintf("role %s (%s)", w.Role, w.File)
	}
	verb := "is"
	if len(w.Keys) > 1 {
		verb = "are"
	}
	return fmt.Sprintf("%s: %s %s not in force; a person allows it with: %s", who, strings.Join(w.Names(), ", "), verb, w.Command())
}

// Command returns the command with which a person trusts the file.
func (w Waiting) Command() string { return "teamctl trust " + Quoted(w.File) }

// Lines returns each key with its value, and each file that a key runs; if an earlier state of the file was trusted, the difference:
// "+ " is new, "- " is gone.
func (w Waiting) Lines() (lines []string) {
	mark := ""
	if w.before != nil {
		mark = "+ "
	}
	for _, k := range w.Keys {
		if w.before == nil || !slices.Contains(w.before, k) {
			lines = append(lines, mark+k.String())
		}
	}
	for _, k := range w.before {
		if !slices.Contains(w.Keys, k) {
			lines = append(lines, "- "+k.String())
		}
	}
	if len(lines) == 0 && w.before != nil {
		lines = append(lines, "the same keys as before")
	}
	for _, path := range slices.Sorted(maps.Keys(w.Runs)) {
		sum := w.Runs[path]
		if sum == "" {
			sum = "is not there"
		}
		lines = append(lines, "runs "+path+": "+sum)
	}
	return lines
}
