package gitrepo

import (
	"bufio"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Types of the objects in a pack, gitformat-pack(5).
const (
	packCommit   = 1
	packTag      = 4
	packOfsDelta = 6
	packRefDelta = 7
)

// scanPack reads a pack and refuses one that is beyond the limits once unpacked. index-pack would find that out by using the
// memory: a kilobyte may unpack to a megabyte. scanPack does not check the content of the objects.
func scanPack(r *bufio.Reader, l Limits) error {
	var start [12]byte
	if _, err := io.ReadFull(r, start[:]); err != nil {
		return damaged(err)
	}
	version, objects := binary.BigEndian.Uint32(start[4:]), binary.BigEndian.Uint32(start[8:])
	switch {
	case string(start[:4]) != "PACK" || version != 2 && version != 3:
		return damaged(errors.New("it has no pack"))
	case int64(objects) > int64(l.Objects):
		return tooBig("%d objects, at most %d", objects, l.Objects)
	}
	left := l.Unpacked
	var z io.ReadCloser
	for range objects {
		size, err := scanObject(r, &z, left)
		switch {
		case errors.Is(err, errLarge):
			return tooBig("more than %d bytes unpacked", l.Unpacked)
		case err != nil:
			return damaged(err)
		}
		left -= size
	}
	var sum [20]byte // index-pack compares it
	if _, err := io.ReadFull(r, sum[:]); err != nil {
		return damaged(err)
	}
	if _, err := r.ReadByte(); !errors.Is(err, io.EOF) {
		return damaged(errors.New("something follows its pack"))
	}
	return nil
}

var errLarge = errors.New("too large")

// scanObject reads one object, which may unpack to at most left bytes, and returns the number of bytes that it would. z is the
// decompressor of the object before.
func scanObject(r *bufio.Reader, z *io.ReadCloser, left int64) (int64, error) {
	c, err := r.ReadByte()
	if err != nil {
		return 0, err
	}
	kind := c >> 4 & 7
	size, err := varint(r, int64(c&15), 4, c)
	if err != nil {
		return 0, err
	}
	switch {
	case kind == packOfsDelta: // how far back its base begins
		for c = 0x80; c&0x80 != 0 && err == nil; {
			c, err = r.ReadByte()
		}
	case kind == packRefDelta:
		_, err = r.Discard(20)
	case kind < packCommit || kind > packTag:
		err = fmt.Errorf("its pack has an object of type %d", kind)
	}
	if err != nil {
		return 0, err
	}
	if size > left {
		return 0, errLarge
	}
	if *z == nil {
		*z, err = zlib.NewReader(r)
	} else {
		err = (*z).(zlib.Resetter).Reset(r, nil)
	}
	if err != nil {
		return 0, err
	}
	in := bufio.NewReader(io.LimitReader(*z, size+1))
	result := size
	if kind >= packOfsDelta { // a delta begins with the sizes of its base and its result
		if _, err = varint(in, 0, 0, 0x80); err == nil {
			result, err = varint(in, 0, 0, 0x80)
		}
		if err != nil {
			return 0, err
		}
		if result > left-size {
			return 0, errLarge
		}
		result += size
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return 0, err
	}
	// To its end, where its checksum is. index-pack refuses an object longer than its size.
	if n, err := io.Copy(io.Discard, io.LimitReader(*z, 1)); err != nil {
		return 0, err
	} else if n > 0 {
		return 0, errors.New("an object of its pack is longer than it says")
	}
	return result, nil
}

// varint continues reading a number; value has its lowest bits, and last is the byte read last, whose highest bit means that
// more follow.
func varint(r io.ByteReader, value int64, shift uint, last byte) (int64, error) {
	for last&0x80 != 0 {
		if shift > 56 {
			return 0, errors.New("a size in its pack is too large")
		}
		var err error
		if last, err = r.ReadByte(); err != nil {
			return 0, err
		}
		value |= int64(last&0x7f) << shift
		shift += 7
	}
	return value, nil
}
