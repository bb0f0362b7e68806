package access

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"agentteam/pkg/config"
	"agentteam/pkg/team"
)

// The bounds of a token's length. The shortest, 32 hexadecimal digits, has 128 bits.
const (
	leastToken = 32
	mostToken  = 512
)

// newToken is the hint how to write a token.
const newToken = "write one line of 32 to 512 letters, digits or signs into it, such as the output of: openssl rand -hex 32"

// ReadToken reads a token from the first line of a file. Errors, without the file's content: InvalidArgument for a
// missing file, for one that others than its owner can use, and for one without a token.
func ReadToken(path string) (config.Secret, error) {
	info, err := os.Stat(path) // before it is opened: that of a pipe would wait
	if err != nil {
		return "", team.Errorf(team.InvalidArgument, "token file: %w", err).WithHint("make it, with mode 0600; %s", newToken)
	}
	if !info.Mode().IsRegular() {
		return "", team.Errorf(team.InvalidArgument, "the token file %s is not a file", path)
	}
	if mode := info.Mode().Perm(); mode&^0o600 != 0 {
		return "", team.Errorf(team.InvalidArgument, "the token file %s has mode %04o, which is wider than 0600", path, mode).WithHint("chmod 600 %s", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", team.Errorf(team.InvalidArgument, "token file: %w", err).WithHint("make it readable for the user that runs this process")
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, mostToken+2)) // with the end of its line
	if err != nil {
		return "", team.Errorf(team.InvalidArgument, "token file: %w", err)
	}
	line, _, _ := strings.Cut(string(data), "\n")
	line = strings.TrimSpace(line)
	hidden := func(r rune) bool { return r <= ' ' || r > '~' }
	if len(line) < leastToken || len(line) > mostToken || strings.ContainsFunc(line, hidden) {
		return "", team.Errorf(team.InvalidArgument, "the token file %s holds no token", path).WithHint("%s", newToken)
	}
	return config.Secret(line), nil
}

// Token reads a token from the first line of a file, and creates the file, with mode 0600, if it is missing. Errors:
// those of [ReadToken]; InvalidState for a file that cannot be created.
func Token(path string) (config.Secret, error) {
	if err := makeToken(path); err != nil {
		return "", err
	}
	return ReadToken(path)
}

// makeToken writes a new token into the file unless it exists. A reader sees no file or all of it; of several
// concurrent calls one writes it.
func makeToken(path string) error {
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	token := make([]byte, 32)
	rand.Read(token)
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return team.Errorf(team.InvalidState, "token file: %w", err).WithHint("name a file in a folder that this process may write")
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.WriteString(hex.EncodeToString(token) + "\n")
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Link(tmp.Name(), path)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return team.Errorf(team.InvalidState, "token file: %w", err).WithHint("name a file in a folder that this process may write")
	}
	return nil
}
