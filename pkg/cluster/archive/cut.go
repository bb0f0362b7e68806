package archive

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats-server/v2/server/archive"

	"agentteam/pkg/team"
)

// A snapshot as the server packs it: this entry, then one for each message, then an entry without a
// name.
const stateEntry = "state.json"

// held is the state of a stream, with which a snapshot begins.
type held struct {
	Msgs  uint64 `json:"messages"`
	Bytes uint64 `json:"bytes"`
	First uint64 `json:"first_seq"`
	Last  uint64 `json:"last_seq"`
}

// Bounds of an entry, so that a small file does not become a large value in memory: the state has
// four numbers, and no server takes a larger message.
const (
	mostState   = 64 << 10
	mostMessage = 64 << 20
)

// errPacked: the form of a snapshot is unknown to this package.
var errPacked = errors.New("it is not packed as nats-server 2.15 packs a stream")

// cut copies a snapshot without the messages after sequence last: the stream as it was when that
// was its newest. It returns how many messages it has found up to sequence before, and checks the
// copied ones, so that an incomplete snapshot does not become a save.
func cut(w io.Writer, r io.Reader, last, before uint64) (found uint64, err error) {
	in := archive.NewReader(s2.NewReader(r))
	pack := s2.NewWriter(w)
	out := archive.NewWriter(pack)
	state, err := readState(in)
	if err != nil {
		return 0, err
	}
	last = min(last, state.Last)
	state.Last = max(last, state.First-min(state.First, 1))
	state.Msgs = min(state.Msgs, state.Last+1-state.First)
	data, err := json.Marshal(state)
	if err != nil {
		return 0, err
	}
	if err := add(out, archive.Header{Name: stateEntry, PayloadSize: int64(len(data))}, data); err != nil {
		return 0, err
	}
	err = messages(in, func(h *archive.Header) error {
		if h.Sequence > last {
			return nil
		}
		if h.Sequence <= before {
			found++
		}
		if err := out.WriteHeader(h); err != nil {
			return err
		}
		_, err := io.CopyN(out, in, h.HeaderSize+h.PayloadSize)
		return err
	})
	if err != nil {
		return found, err
	}
	if err := add(out, archive.Header{}, nil); err != nil {
		return found, err
	}
	return found, pack.Close()
}

func add(out *archive.Writer, h archive.Header, data []byte) error {
	err := out.WriteHeader(&h)
	if err == nil && len(data) > 0 {
		_, err = out.Write(data)
	}
	return err
}

func readState(in *archive.Reader) (s held, err error) {
	h, err := in.Next()
	if errors.Is(err, archive.ErrInvalidArchive) || err == nil && (h.Name != stateEntry || h.HeaderSize != 0 || h.PayloadSize > mostState) {
		return s, errPacked
	}
	if err == nil {
		err = json.NewDecoder(in).Decode(&s)
	}
	return s, err
}

// messages calls f for each message of a snapshot whose state was read. Errors: f's; that of a
// snapshot that is cut short, or whose messages are not in order.
func messages(in *archive.Reader, f func(*archive.Header) error) error {
	for last := uint64(0); ; {
		h, err := in.Next()
		switch {
		case errors.Is(err, io.EOF):
			return errors.New("its end is missing")
		case err != nil:
			return err
		case h.Sequence == 0 && h.Name == "":
			return nil
		case h.HeaderSize > mostMessage || h.PayloadSize > mostMessage:
			return fmt.Errorf("message %d is larger than a server takes", h.Sequence)
		case h.Sequence <= last:
			return fmt.Errorf("message %d comes after message %d", h.Sequence, last)
		}
		last = h.Sequence
		if err := f(h); err != nil {
			return err
		}
	}
}

// inspect reads and checks a part of a save. Errors: InvalidArgument if the server could not make
// the stream from it.
func inspect(name string, r io.Reader, belongs func(subject string) bool) error {
	in := archive.NewReader(s2.NewReader(r))
	state, err := readState(in)
	if err == nil {
		err = messages(in, func(h *archive.Header) error {
			switch {
			case h.Sequence > state.Last:
				return fmt.Errorf("message %d comes after the last, %d", h.Sequence, state.Last)
			case !belongs(h.Name):
				return fmt.Errorf("message %d has the subject %.80q of another stream", h.Sequence, h.Name)
			}
			return nil
		})
	}
	if err != nil {
		return team.Errorf(team.InvalidArgument, "its part %s cannot be used: %w", name, err)
	}
	return nil
}
