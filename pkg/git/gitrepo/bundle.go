package gitrepo

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"agentteam/pkg/team"
)

// header is the part of a bundle before its pack.
type header struct {
	bases   []Hash // that the receiver must have
	tip     Hash
	shallow []Hash // commits whose parents are not there, of a history that was cut
}

const (
	tipRef     = "refs/heads/agentteam/bundle" // under which a bundle names its tip
	shallowRef = "refs/agentteam/shallow/"     // and, with a number, the ends of its history
	mostLines  = 10_000                        // of a header
	mostLine   = 4 << 10                       // bytes
)

var errCutShort = errors.New("it is cut short")

// damaged returns the error for data that is not a bundle, or not a whole one.
func damaged(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errCutShort
	}
	return team.Errorf(team.InvalidArgument, "the bundle is refused: %w", err)
}

// readHeader reads a bundle up to its pack. The format is that of gitformat-bundle(5), version 2, or 3 without capabilities
// that change its content.
func readHeader(r *bufio.Reader) (h header, err error) {
	for n := 0; n < mostLines; n++ {
		l, err := readLine(r)
		switch {
		case err != nil:
			return header{}, damaged(err)
		case n == 0:
			if l != "# v2 git bundle" && l != "# v3 git bundle" {
				return header{}, damaged(errors.New("it is no bundle of git"))
			}
			continue
		case l == "" && h.tip == "":
			return header{}, damaged(errors.New("it has no commit"))
		case l == "":
			return h, nil
		}
		if err := h.take(l); err != nil {
			return header{}, damaged(err)
		}
	}
	return header{}, damaged(errors.New("its header is too long"))
}

// take parses one line of a header.
func (h *header) take(l string) error {
	if l == "@object-format=sha1" {
		return nil
	}
	rest, base := strings.CutPrefix(l, "-")
	id, name, _ := strings.Cut(rest, " ")
	hash, err := ParseHash(id)
	switch {
	case err != nil:
		return fmt.Errorf("its header says %.80q", l)
	case base:
		h.bases = append(h.bases, hash)
	case name == tipRef && h.tip == "":
		h.tip = hash
	case strings.HasPrefix(name, shallowRef):
		h.shallow = append(h.shallow, hash)
	default:
		return fmt.Errorf("its header names %.80q", name)
	}
	return nil
}

// BaseOf reads the beginning of a bundle of [Repo.Bundle], and returns its base commit; "" for a whole history. Errors:
// InvalidArgument for a bundle that is damaged.
func BaseOf(bundle io.Reader) (Hash, error) {
	h, err := readHeader(bufio.NewReader(bundle))
	if err != nil || len(h.bases) == 0 {
		return "", err
	}
	return h.bases[0], nil
}

func readLine(r *bufio.Reader) (string, error) {
	var b strings.Builder
	for b.Len() < mostLine {
		c, err := r.ReadByte()
		if err != nil {
			return "", err
		}
		if c == '\n' {
			return b.String(), nil
		}
		b.WriteByte(c)
	}
	return "", errors.New("a line of its header is too long")
}

// text returns the header in the bundle format.
func (h header) text() string {
	var b strings.Builder
	b.WriteString("# v2 git bundle\n")
	for _, base := range h.bases {
		b.WriteString("-" + string(base) + "\n")
	}
	b.WriteString(string(h.tip) + " " + tipRef + "\n")
	for i, s := range h.shallow {
		fmt.Fprintf(&b, "%s %s%d\n", s, shallowRef, i)
	}
	return b.String() + "\n"
}
