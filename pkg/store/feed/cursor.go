package feed

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"hash/fnv"
	"slices"
	"time"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/team"
)

// Cursor is a position in a team's feed, behind some entry. It is opaque: about 80 characters of base64url, valid in every
// process, for this team only. The zero Cursor is the beginning.
type Cursor string

// Place is the content of a cursor: the position in each of the streams. Since an entry may come out of order, a place is not a
// number: of two places neither may cover the other.
type Place [kinds]position

// position is a position in one stream.
type position struct {
	seq   uint64 // of the last message of which anything was given
	given int    // how many events of it were given; 0: all
	made  uint32 // age of the stream: a stream that was made again is another
	at    uint64 // when the server stored the message, in Unix milliseconds; 0: not known. A stream that was restored from an older copy uses a sequence a second time
}

func stored(m broker.Msg) uint64 { return uint64(m.Time.UnixMilli()) }

// mark returns the position as a mark.
func (p position) mark() broker.Mark {
	m := broker.Mark{Seq: p.seq}
	if p.at != 0 {
		m.At = time.UnixMilli(int64(p.at))
	}
	return m
}

// whole returns the sequence up to which all events of every message were given.
func (p position) whole() uint64 {
	if p.given != 0 {
		return p.seq - 1
	}
	return p.seq
}

// age returns a hash of the stream's creation time: it differs for a stream that was made again.
func age(s broker.State) uint32 {
	b, _ := s.Created.Truncate(time.Microsecond).UTC().MarshalBinary() // which fails for odd time zones only
	return crc32.ChecksumIEEE(b)
}

// A cursor is the version, a hash of the team's name, then for each stream the sequence, the number of events given and the
// time of the message, as varints, and the stream's age, in four bytes; last the checksum of all that.
const (
	cursorVersion = 1
	checksumBytes = 4
)

func hashOf(id team.TeamID) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // which never fails
	return h.Sum32()
}

// Cursor returns the cursor of the place, in the team id.
func (p Place) Cursor(id team.TeamID) Cursor {
	b := make([]byte, 0, 64)
	b = append(b, cursorVersion)
	b = binary.BigEndian.AppendUint32(b, hashOf(id))
	for _, s := range p {
		b = binary.AppendUvarint(b, s.seq)
		b = binary.AppendUvarint(b, uint64(s.given))
		b = binary.AppendUvarint(b, s.at)
		b = binary.BigEndian.AppendUint32(b, s.made)
	}
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	return Cursor(base64.RawURLEncoding.EncodeToString(b))
}

// Place decodes the cursor. The zero cursor gives the zero Place, which covers nothing. Error: InvalidArgument for a string
// that is not a cursor of this team.
func (c Cursor) Place(id team.TeamID) (p Place, err error) {
	if c == "" {
		return p, nil
	}
	malformed := team.Errorf(team.InvalidArgument, "%q is not a cursor", team.Clean(string(c), 80)).
		WithHint("take one that the feed has printed, whole; without a cursor it begins at the beginning")
	b, err := base64.RawURLEncoding.Strict().DecodeString(string(c))
	if err != nil || len(b) < 1+4+checksumBytes {
		return p, malformed
	}
	rest, sum := b[:len(b)-checksumBytes], b[len(b)-checksumBytes:]
	switch {
	case crc32.ChecksumIEEE(rest) != binary.BigEndian.Uint32(sum):
		return p, malformed
	case rest[0] != cursorVersion:
		return p, team.Errorf(team.InvalidArgument, "the cursor is of version %d, this program reads %d", rest[0], cursorVersion).
			WithHint("use the agentteam version that made it, or begin without a cursor")
	case binary.BigEndian.Uint32(rest[1:]) != hashOf(id):
		return p, team.Errorf(team.InvalidArgument, "the cursor is not of team %s", id).WithHint("take a cursor of this team, or begin without one")
	}
	rest = rest[1+4:]
	for i := range p {
		seq, n := binary.Uvarint(rest)
		given, m := binary.Uvarint(rest[max(n, 0):])
		at, k := binary.Uvarint(rest[max(n, 0)+max(m, 0):])
		if n <= 0 || m <= 0 || k <= 0 || given > maxGiven || len(rest) < n+m+k+4 {
			return p, malformed
		}
		p[i] = position{seq, int(given), binary.BigEndian.Uint32(rest[n+m+k:]), at}
		rest = rest[n+m+k+4:]
	}
	if len(rest) > 0 || !slices.Equal([]byte(p.Cursor(id)), []byte(c)) { // one way to write each
		return p, malformed
	}
	return p, nil
}

// maxGiven is far more than the number of events of one stored message, of a megabyte.
const maxGiven = 1 << 20
