package archive

import (
	"archive/tar"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/team"
	"agentteam/pkg/team/codec"
)

// A save is a tar: headEntry, an entry for each stream, partsEntry, digestEntry.
const (
	headEntry   = "agentteam-save.json"
	partsEntry  = "parts.json"
	digestEntry = "digest"
	partSuffix  = ".arc.s2"

	maxSmall = 1 << 20
)

// Head is the header of a save.
type Head struct {
	Format  int         `json:"format"` // the protocol version of its records
	ID      string      `json:"id"`     // of the save
	Team    team.TeamID `json:"team"`
	Copy    bool        `json:"copy"`    // the team may be at work elsewhere
	Program string      `json:"program"` // the version that wrote it
	Created time.Time   `json:"created"` // the instant that it shows, by the server's clock
	Server  string      `json:"server"`
}

// Part is one stream in a save.
type Part struct {
	Stream string    `json:"stream"`
	Size   int64     `json:"size"` // bytes in the file
	SHA256 string    `json:"sha256"`
	Made   time.Time `json:"made"` // when the stream was made

	at int64 // where in the file it begins
}

// tail returns the end of a save: an entry with the digest of all bytes before it, and the end of
// the tar. It is the same for the same digest, so that a changed byte in it is found, too.
func tail(sum []byte) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	text := "sha256:" + hex.EncodeToString(sum) + "\n"
	_ = w.WriteHeader(&tar.Header{Name: digestEntry, Mode: 0o600, Size: int64(len(text)), Format: tar.FormatUSTAR})
	_, _ = io.WriteString(w, text)
	_ = w.Close() // none of it fails: it is written to memory
	return b.Bytes()
}

// writer writes a save.
type writer struct {
	tar   *tar.Writer
	sum   hash.Hash
	to    io.Writer
	parts []Part
}

func newWriter(to io.Writer, h Head) (*writer, error) {
	w := &writer{sum: sha256.New(), to: to}
	w.tar = tar.NewWriter(io.MultiWriter(to, w.sum))
	return w, w.small(headEntry, h)
}

func (w *writer) small(name string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return w.entry(name, int64(len(data)), bytes.NewReader(data))
}

func (w *writer) entry(name string, size int64, r io.Reader) error {
	err := w.tar.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size})
	if err == nil {
		_, err = io.Copy(w.tar, r)
	}
	return err
}

// part adds a stream that was packed into f.
func (w *writer) part(p Part, f *os.File) (err error) {
	if p.Size, err = f.Seek(0, io.SeekEnd); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	sum := sha256.New()
	if err := w.entry(p.Stream+partSuffix, p.Size, io.TeeReader(f, sum)); err != nil {
		return err
	}
	p.SHA256 = hex.EncodeToString(sum.Sum(nil))
	w.parts = append(w.parts, p)
	return nil
}

func (w *writer) close() error {
	if err := w.small(partsEntry, w.parts); err != nil {
		return err
	}
	if err := w.tar.Flush(); err != nil {
		return err
	}
	_, err := w.to.Write(tail(w.sum.Sum(nil)))
	return err
}

// File is a verified save. It must be closed.
type File struct {
	Head  Head
	Parts []Part

	f *os.File
}

// Open opens a save and verifies all of it. Errors: NotFound; InvalidArgument for a file that is
// not a save, has a later version, was cut short or changed.
func Open(name string) (*File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a named pipe is not waited for
	if errors.Is(err, os.ErrNotExist) {
		return nil, team.Errorf(team.NotFound, "there is no file %s", name)
	}
	if err != nil {
		return nil, team.Errorf(team.InvalidArgument, "the save cannot be read: %w", err)
	}
	s := &File{f: f}
	if err := s.verify(); err != nil {
		f.Close()
		return nil, team.Errorf(cmp.Or(team.CodeOf(err), team.InvalidArgument), "%s is refused: %w", name, err)
	}
	return s, nil
}

// Name returns the file's name, as it was opened.
func (s *File) Name() string { return s.f.Name() }

// Close closes the file.
func (s *File) Close() error { return s.f.Close() }

func (s *File) verify() error {
	info, err := s.f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	if err == nil {
		err = s.readHead()
	}
	if err == nil {
		err = s.verifyDigest(info.Size())
	}
	if err == nil {
		err = s.readParts()
	}
	return err
}

// readHead reads the first entry, so that the error names a file of another kind or version.
func (s *File) readHead() error {
	r := tar.NewReader(s.f)
	h, err := r.Next()
	if err != nil || h.Name != headEntry || h.Size > maxSmall {
		return errors.New("it is no save of agentteam")
	}
	if err := json.NewDecoder(r).Decode(&s.Head); err != nil {
		return fmt.Errorf("its head cannot be read: %w", err)
	}
	id, err := team.ParseTeamID(string(s.Head.Team))
	switch {
	case s.Head.Format > 0 && s.Head.Format != team.Protocol:
		return team.Errorf(team.InvalidArgument, "%w", codec.OtherProtocol(s.Head.Format)).WithHint("load it with the agentteam version that wrote it: %s", team.Clean(s.Head.Program, 40))
	case err != nil, s.Head.Format == 0, s.Head.ID == "":
		return errors.New("its head is not complete")
	}
	s.Head.Team = id
	return nil
}

// verifyDigest compares the file with the digest at its end.
func (s *File) verifyDigest(size int64) error {
	sum := sha256.New()
	length := int64(len(tail(sum.Sum(nil))))
	if size < length {
		return errCut
	}
	if _, err := s.f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if _, err := io.CopyN(sum, s.f, size-length); err != nil {
		return err
	}
	end := make([]byte, length)
	if _, err := io.ReadFull(s.f, end); err != nil {
		return err
	}
	switch want := tail(sum.Sum(nil)); {
	case bytes.Equal(end, want):
		return nil
	case bytes.HasPrefix(end, []byte(digestEntry)):
		return errors.New("it was changed after it was written: its digest is another")
	}
	return errCut
}

var errCut = errors.New("it is cut short, or something was added to it: it does not end as a save does")

// readParts finds and checks the streams.
func (s *File) readParts() error {
	if _, err := s.f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	r := tar.NewReader(s.f)
	found := map[string]Part{}
	for {
		h, err := r.Next()
		if err != nil {
			return fmt.Errorf("its entries cannot be read: %w", err)
		}
		switch stream, isPart := strings.CutSuffix(h.Name, partSuffix); {
		case h.Name == headEntry:
		case h.Name == partsEntry:
			if err := json.NewDecoder(io.LimitReader(r, maxSmall)).Decode(&s.Parts); err != nil {
				return fmt.Errorf("its list of parts cannot be read: %w", err)
			}
			return s.compare(found)
		case isPart:
			p, err := s.readPart(stream, h.Size, r)
			if err != nil {
				return err
			}
			found[stream] = p
		default:
			return fmt.Errorf("it has an entry %.80q", h.Name)
		}
	}
}

func (s *File) readPart(stream string, size int64, r io.Reader) (Part, error) {
	at, err := s.f.Seek(0, io.SeekCurrent)
	if err != nil {
		return Part{}, err
	}
	i := slices.Index(names(s.Head.Team), stream)
	if i < 0 {
		return Part{}, fmt.Errorf("it has a part %.80q, which is none of team %s", stream, s.Head.Team)
	}
	filters := broker.Streams(s.Head.Team)[i].Subjects
	sum := sha256.New()
	both := io.TeeReader(r, sum)
	err = inspect(stream, both, func(subject string) bool {
		return slices.ContainsFunc(filters, func(f string) bool { return server.SubjectMatchesFilter(subject, f) })
	})
	if err == nil {
		_, err = io.Copy(io.Discard, both)
	}
	return Part{Stream: stream, Size: size, SHA256: hex.EncodeToString(sum.Sum(nil)), at: at}, err
}

// compare compares the found parts with the list of them.
func (s *File) compare(found map[string]Part) error {
	want := names(s.Head.Team)
	if len(s.Parts) != len(want) {
		return fmt.Errorf("it lists %d parts and should have %d", len(s.Parts), len(want))
	}
	for i, p := range s.Parts {
		f, ok := found[p.Stream]
		if !ok || !slices.Contains(want, p.Stream) || f.Size != p.Size || f.SHA256 != p.SHA256 {
			return fmt.Errorf("its part %.80q is not as its list has it", p.Stream)
		}
		delete(found, p.Stream)
		s.Parts[i].at = f.at
	}
	return nil
}

// open returns a reader of the part's bytes in the file.
func (s *File) open(p Part) io.Reader { return io.NewSectionReader(s.f, p.at, p.Size) }

// names returns the names of a team's streams.
func names(id team.TeamID) (all []string) {
	for _, c := range broker.Streams(id) {
		all = append(all, c.Name)
	}
	return all
}
