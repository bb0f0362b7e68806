package supervisor

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strconv"
	"time"
)

// A message is a number of bytes, and in these many a list after the other: a number of texts, and for each its
// number of bytes and these. All numbers have 32 bits. It is in place of JSON, whose package, and the many that come
// before it, would be initialised in each supervisor.

var errCut = errors.New("a message is cut off")

// send writes a message.
func send(w io.Writer, lists ...[]string) error {
	out := make([]byte, 4)
	for _, texts := range lists {
		out = binary.NativeEndian.AppendUint32(out, uint32(len(texts)))
		for _, text := range texts {
			out = binary.NativeEndian.AppendUint32(out, uint32(len(text)))
			out = append(out, text...)
		}
	}
	if len(out) > math.MaxInt32 {
		return errors.New("a message is too large")
	}
	binary.NativeEndian.PutUint32(out, uint32(len(out)-4))
	_, err := w.Write(out)
	return err
}

// receive reads a message of a number of lists. Errors: [io.EOF] if there is no further one.
func receive(r io.Reader, lists int) ([][]string, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	size := int64(binary.NativeEndian.Uint32(head[:]))
	in, err := io.ReadAll(io.LimitReader(r, size))
	if err != nil || int64(len(in)) < size {
		return nil, errCut
	}
	number := func() int {
		if len(in) < 4 {
			in = nil
			return -1
		}
		n := binary.NativeEndian.Uint32(in)
		in = in[4:]
		return int(n)
	}
	all := make([][]string, lists)
	for i := range all {
		left := number()
		for ; left > 0; left-- {
			n := number()
			if n < 0 || n > len(in) {
				return nil, errCut
			}
			all[i] = append(all[i], string(in[:n]))
			in = in[n:]
		}
		if left < 0 {
			return nil, errCut
		}
	}
	return all, nil
}

// Send writes a command to its supervisor.
func (s Spec) Send(w io.Writer) error {
	files := make([]string, len(s.Files))
	for i, f := range s.Files {
		files[i] = string(f)
	}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	return send(w, s.Args, s.Env, s.Under, files, s.Open,
		[]string{s.Proxy, number(s.Memory), number(int64(s.Processes)), number(s.FileSize), string(s.Filter), strconv.FormatBool(s.Confined)})
}

// receiveSpec reads a command.
func receiveSpec(r io.Reader) (s Spec, err error) {
	lists, err := receive(r, 6)
	if err != nil {
		return s, err
	}
	s = Spec{Args: lists[0], Env: lists[1], Under: lists[2], Open: lists[4]}
	for _, f := range lists[3] {
		s.Files = append(s.Files, []byte(f))
	}
	if len(s.Args) == 0 || len(lists[5]) != 6 {
		return s, errCut
	}
	s.Proxy, s.Filter = lists[5][0], []byte(lists[5][4])
	var numbers [3]int64
	for i := range numbers {
		if numbers[i], err = strconv.ParseInt(lists[5][1+i], 10, 64); err != nil {
			return s, err
		}
	}
	if s.Confined, err = strconv.ParseBool(lists[5][5]); err != nil {
		return s, err
	}
	s.Memory, s.Processes, s.FileSize = numbers[0], int(numbers[1]), numbers[2]
	return s, nil
}

// SendLeft writes to a supervisor for how long its command may still run.
func SendLeft(w io.Writer, left time.Duration) error {
	return send(w, []string{strconv.FormatInt(int64(left), 10)})
}

func receiveLeft(r io.Reader) (time.Duration, error) {
	lists, err := receive(r, 1)
	if err != nil {
		return 0, err
	}
	if len(lists[0]) != 1 {
		return 0, errCut
	}
	left, err := strconv.ParseInt(lists[0][0], 10, 64)
	return time.Duration(left), err
}

func (r Report) send(w io.Writer) error {
	return send(w, []string{strconv.Itoa(r.Code), r.How, string(r.Ended), r.Failed})
}

// ReceiveReport waits for the report of a supervisor. Errors: [io.EOF] if it has ended without.
func ReceiveReport(from io.Reader) (r Report, err error) {
	lists, err := receive(from, 1)
	if err != nil {
		return r, err
	}
	if len(lists[0]) != 4 {
		return r, errCut
	}
	r = Report{How: lists[0][1], Ended: End(lists[0][2]), Failed: lists[0][3]}
	r.Code, err = strconv.Atoi(lists[0][0])
	return r, err
}
